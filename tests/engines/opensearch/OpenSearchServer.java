import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.BreakIterator;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.codelibs.opensearch.runner.node.OpenSearchRunnerNode;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/**
 * Runs one OpenSearch node: java ... OpenSearchServer HOME DATA [SETTING=VALUE ...]
 *
 * Prints "ready http://127.0.0.1:PORT" once it answers. Lives until its standard input ends, so that it never
 * outlives the program that started it, even one that was killed.
 */
public class OpenSearchServer {
    /** Opens the runner's list of the distribution's modules. */
    static class Modules extends OpenSearchRunner {
        static String[] names() { return MODULE_TYPES; }
    }

    public static void main(String[] args) throws Exception {
        Path data = Path.of(args[1]);
        Path config = Files.createDirectories(data.resolve("config"));
        Settings.Builder settings = Settings.builder().put("path.home", data.toString());
        for (String setting : List.of(args).subList(2, args.length)) {
            String[] pair = setting.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Node node = new OpenSearchRunnerNode(new Environment(settings.build(), config), modules());
        node.start();
        var http = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
        System.out.println("ready http://127.0.0.1:" + http.getPort());
        System.in.transferTo(OutputStream.nullOutputStream());
        Runtime.getRuntime().halt(0);  // the data folder is thrown away: nothing to flush
    }

    /** The modules that are among the jars; the runner also names some that only other releases have. */
    @SuppressWarnings("unchecked")
    static List<Class<? extends Plugin>> modules() {
        List<Class<? extends Plugin>> found = new ArrayList<>();
        for (String name : Modules.names()) {
            boolean unfit = name.endsWith(".CommonAnalysisModulePlugin") && !segmentsThai();
            try {
                found.add((Class<? extends Plugin>) Class.forName(unfit ? "AnalysisWithoutThai" : name));
            } catch (ClassNotFoundException missing) {
                System.out.println("without " + name);
            }
        }
        return found;
    }

    /** Whether this Java knows where Thai words end, tested as Lucene does; slim runtimes come without the locale. */
    static boolean segmentsThai() {
        BreakIterator words = BreakIterator.getWordInstance(Locale.forLanguageTag("th"));
        words.setText("\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22");
        return words.isBoundary(4);
    }
}
