// Index documents and search them through a proxy with a low-level REST client: java Search URL INDEX
// The body of each answer is printed on a line. For OpenSearch, the test replaces the names of three packages.
import java.util.List;
import org.apache.http.HttpHost;
import org.apache.http.util.EntityUtils;
import org.elasticsearch.client.Request;
import org.elasticsearch.client.ResponseException;
import org.elasticsearch.client.RestClient;

public class Search {
    private static final String TEXT =
        "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade.";
    private static final String FINAL =
        "Ministers and players met on Friday after the home side reached the final for the first time in forty years.";
    private static final String QUERY = "\"query\": {\"match\": {\"body\": \"ministers friday\"}}";

    public static void main(String[] arguments) throws Exception {
        String index = arguments[1];
        try (RestClient client = RestClient.builder(HttpHost.create(arguments[0])).setCompressionEnabled(true).build()) {
            StringBuilder bulk = new StringBuilder();
            for (String text : List.of(TEXT, "LONDON (Wire) - " + TEXT, FINAL)) {
                bulk.append("{\"index\": {}}\n{\"body\": \"").append(text).append("\", \"number\": 9007199254740991}\n");
            }
            send(client, "POST", "/" + index + "/_bulk?refresh=true", bulk.toString());
            send(client, "POST", "/" + index + "/_search", "{" + QUERY + "}");
            send(client, "GET", "/" + index + "/_search", "{" + QUERY + ", \"ndd\": false}");
            send(client, "POST", "/" + index + "/_msearch", "{}\n{" + QUERY + "}\n{}\n{" + QUERY + ", \"size\": 1}\n");
            try {
                send(client, "GET", "/" + index + "/_doc/none", null);
            } catch (ResponseException missing) {
                System.out.println(missing.getResponse().getStatusLine().getStatusCode());
            }
        }
    }

    private static void send(RestClient client, String method, String path, String body) throws Exception {
        Request request = new Request(method, path.replaceAll("\\?.*", ""));
        if (path.contains("?")) {
            request.addParameter("refresh", "true");
        }
        if (body != null) {
            request.setJsonEntity(body);
        }
        System.out.println(EntityUtils.toString(client.performRequest(request).getEntity()));
    }
}
