import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.http.HttpHost;
import org.elasticsearch.client.Request;
import org.elasticsearch.client.RestClient;

public class Copies {
    public static void main(String[] arguments) throws Exception {
        try (RestClient client = RestClient.builder(HttpHost.create("http://localhost:9201")).build()) { // the proxy
            Request request = new Request("POST", "/articles/_search");
            request.setJsonEntity("{\"query\": {\"match\": {\"body\": \"ministers friday\"}}}");
            JsonNode page = new ObjectMapper().readTree(client.performRequest(request).getEntity().getContent());
            for (JsonNode hit : page.at("/hits/hits")) {
                StringBuilder told = new StringBuilder();
                for (JsonNode copy : hit.at("/inner_hits/near_duplicates/hits/hits")) {
                    String similarity = copy.at("/fields/ndd.similarity/0").asText();
                    told.append(told.length() > 0 ? ", " : "").append(copy.get("_id").asText() + " (" + similarity + ")");
                }
                System.out.println(hit.get("_id").asText() + " stands for " + (told.length() > 0 ? told : "itself"));
            }
            System.out.println(page.at("/ndd/hidden").asText("left alone"));
        }
    }
}
