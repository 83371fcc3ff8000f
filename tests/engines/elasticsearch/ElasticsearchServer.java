import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.elasticsearch.Build;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginBundle;
import org.elasticsearch.plugins.PluginsLoader;
import org.elasticsearch.rest.RestController;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;

/**
 * Runs one Elasticsearch node: java ... ElasticsearchServer HOME DATA [SETTING=VALUE ...]
 *
 * HOME holds lib/*.jar and modules/NAME/*.jar. Prints "ready http://127.0.0.1:PORT" once it answers. Lives until
 * its standard input ends, so that it never outlives the program that started it, even one that was killed.
 */
public class ElasticsearchServer {
    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        Path data = Path.of(args[1]);
        Path config = Files.createDirectories(data.resolve("config"));
        Settings.Builder settings = Settings.builder()
            .put("path.home", home).put("path.data", data.resolve("data")).put("path.logs", data.resolve("logs"));
        for (String setting : List.of(args).subList(2, args.length)) {
            String[] pair = setting.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        System.setProperty("es.nativelibs.path", home.resolve("native").toString());
        System.setProperty("org.elasticsearch.nativeaccess.enableVectorLibrary", "false");  // libvec is not published
        LogConfigurator.configureESLogging();
        LogConfigurator.configureWithoutConfig(Settings.builder().put("logger.level", "WARN").build());

        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings.build(), Map.of(), config, () -> settings.get("node.name"));
        // false: the server runs on the class path, so it is no module whose packages it could open to plugins
        PluginsLoader plugins = PluginsLoader.createPluginsLoader(
            bundles(home.resolve("modules")), Set.of(), Map.of(), false);
        Node node = new Node(environment, plugins);
        answerRoot(node.injector().getInstance(RestController.class), environment.settings());
        node.start();
        var http = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
        System.out.println("ready http://127.0.0.1:" + http.getPort());
        System.in.transferTo(OutputStream.nullOutputStream());
        Runtime.getRuntime().halt(0);  // the data folder is thrown away: nothing to flush
    }

    /** Answers GET / and HEAD /, which clients ask first: in the full distribution an unpublished module does. */
    static void answerRoot(RestController rest, Settings settings) {
        Build build = Build.current();
        RestHandler handler = (request, channel, client) -> channel.sendResponse(new RestResponse(RestStatus.OK,
            channel.newBuilder().startObject()
                .field("name", settings.get("node.name")).field("cluster_name", settings.get("cluster.name"))
                .startObject("version")
                .field("number", build.version()).field("build_flavor", build.flavor())
                .field("build_hash", build.hash()).field("build_date", build.date())
                .field("build_snapshot", build.isSnapshot())
                .endObject().field("tagline", "You Know, for Search").endObject()));
        for (RestRequest.Method method : List.of(RestRequest.Method.GET, RestRequest.Method.HEAD)) {
            rest.registerHandler(new RestHandler.Route(method, "/"), handler);
        }
    }

    /** Finds the modules; by reflection, because late releases of 9 ask for a second argument (serverless or not). */
    @SuppressWarnings("unchecked")
    static Set<PluginBundle> bundles(Path modules) throws Exception {
        for (Method method : PluginsLoader.class.getMethods()) {
            if (method.getName().equals("loadModulesBundles")) {
                boolean old = method.getParameterCount() == 1;
                return (Set<PluginBundle>) (old ? method.invoke(null, modules) : method.invoke(null, modules, false));
            }
        }
        throw new NoSuchMethodException("PluginsLoader.loadModulesBundles");
    }
}
