import { Client } from "@elastic/elasticsearch";

const client = new Client({ node: "http://localhost:9201" }); // the proxy
const page = await client.search({ index: "articles", query: { match: { body: "ministers friday" } } });
for (const hit of page.hits.hits) {
  const copies = hit.inner_hits?.near_duplicates?.hits.hits ?? [];
  const told = copies.map((copy) => `${copy._id} (${copy.fields["ndd.similarity"][0]})`);
  console.log(hit._id, "stands for", told.join(", ") || "itself");
}
console.log(page.ndd?.hidden ?? "left alone");
