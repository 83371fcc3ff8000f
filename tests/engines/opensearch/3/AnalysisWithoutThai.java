import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.lucene.analysis.Analyzer;
import org.opensearch.analysis.common.CommonAnalysisModulePlugin;
import org.opensearch.index.analysis.AnalyzerProvider;
import org.opensearch.index.analysis.PreBuiltAnalyzerProviderFactory;
import org.opensearch.indices.analysis.AnalysisModule.AnalysisProvider;

/**
 * The analysis module for a Java that cannot segment Thai.
 *
 * OpenSearch 3 makes every analyzer for every index, so that one it cannot make would let no index open.
 */
public class AnalysisWithoutThai extends CommonAnalysisModulePlugin {
    @Override public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
        Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> analyzers = new TreeMap<>(super.getAnalyzers());
        analyzers.remove("thai");
        return analyzers;
    }

    @Override public List<PreBuiltAnalyzerProviderFactory> getPreBuiltAnalyzerProviderFactories() {
        return super.getPreBuiltAnalyzerProviderFactories().stream()
            .filter(analyzer -> !analyzer.getName().equals("thai")).toList();
    }
}
