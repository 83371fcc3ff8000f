import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/**
 * Runs one Solr node with an empty core "news": java ... SolrServer HOME DATA
 *
 * HOME is not read; DATA is a new folder. Prints "ready http://127.0.0.1:PORT/solr" once it answers. Lives until its
 * standard input ends, so that it never outlives the program that started it, even one that was killed.
 */
public class SolrServer {
    private static final String CONFIGURATION = """
        <config>
          <luceneMatchVersion>9.11</luceneMatchVersion>
          <schemaFactory class="ClassicIndexSchemaFactory"/>
          <updateHandler class="solr.DirectUpdateHandler2"/>
          <requestHandler name="/select" class="solr.SearchHandler"/>
        </config>
        """;
    // Texts and lists of integers are as in the schema "_default", which is not published as a jar.
    private static final String SCHEMA = """
        <schema name="news" version="1.7">
          <fieldType name="string" class="solr.StrField"/>
          <fieldType name="pint" class="solr.IntPointField" docValues="true"/>
          <fieldType name="text_general" class="solr.TextField" multiValued="true">
            <analyzer><tokenizer name="standard"/><filter name="lowercase"/></analyzer>
          </fieldType>
          <field name="id" type="string"/>
          <field name="body" type="text_general"/>
          <dynamicField name="*_i" type="pint"/>
          <dynamicField name="*_s" type="string"/>
          <dynamicField name="*_is" type="pint" multiValued="true"/>
          <uniqueKey>id</uniqueKey>
        </schema>
        """;

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[1]).resolve("home");
        Path core = Files.createDirectories(home.resolve("news").resolve("conf"));
        Files.writeString(home.resolve("solr.xml"), "<solr/>");
        Files.writeString(core.resolveSibling("core.properties"), "");
        Files.writeString(core.resolve("solrconfig.xml"), CONFIGURATION);
        Files.writeString(core.resolve("schema.xml"), SCHEMA);
        JettySolrRunner node = new JettySolrRunner(home.toString(), JettyConfig.builder().build());
        node.start();
        System.out.println("ready " + node.getBaseUrl());
        System.in.transferTo(OutputStream.nullOutputStream());
        Runtime.getRuntime().halt(0);  // the data folder is thrown away: nothing to flush
    }
}
