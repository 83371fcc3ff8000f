// Index documents and search them through a proxy with an official client: node search.mjs FAMILY URL INDEX
import { Client as Elasticsearch } from "@elastic/elasticsearch";
import { Client as OpenSearch } from "@opensearch-project/opensearch";

const [family, node, index] = process.argv.slice(2);
const client = family === "elasticsearch" ? new Elasticsearch({ node }) : new OpenSearch({ node });
const told = (answer) => answer.body ?? answer;
const search = async (body) => told(await client.search({ index, ...(family === "elasticsearch" ? body : { body }) }));

const text = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade.";
const final = "Ministers and players met on Friday after the home side reached the final for the first time in forty years.";
const documents = [text, `LONDON (Wire) - ${text}`, final];
const lines = documents.flatMap((body, i) => [{ index: { _index: index, _id: String(i) } }, { body, number: 9007199254740991 }]);
const bulk = told(await client.bulk({ refresh: true, ...(family === "elasticsearch" ? { operations: lines } : { body: lines }) }));

const query = { match: { body: "ministers friday" } };
const page = await search({ query });
const off = await search({ query, ndd: false });
const several = told(await client.msearch(family === "elasticsearch"
  ? { searches: [{ index }, { query }, { index }, { query, size: 1 }] }
  : { body: [{ index }, { query }, { index }, { query, size: 1 }] }));
const helped = [];
if (family === "elasticsearch") {
  for await (const hit of client.helpers.scrollDocuments({ index, query, size: 1 })) helped.push(hit.number);
} else {
  for await (const hit of client.helpers.scrollDocuments({ index, body: { query }, size: 1 })) helped.push(hit.number);
}
const missing = await client.get({ index, id: "none" }).catch((error) => error.statusCode ?? error.meta?.statusCode);
console.log(JSON.stringify({
  errors: bulk.errors,
  shown: page.hits.hits.length,
  copies: page.hits.hits.flatMap((hit) => hit.inner_hits?.near_duplicates?.hits.hits.map((copy) => copy._id) ?? []).length,
  hidden: page.ndd.hidden,
  sketches: page.hits.hits.filter((hit) => hit._source.ndd?.sketch).length,
  off: off.hits.hits.length,
  several: several.responses.map((one) => one.hits.hits.length),
  scrolled: helped,
  missing,
}));
await client.close();
