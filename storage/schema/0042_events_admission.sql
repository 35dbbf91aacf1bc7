-- What each admission plugin answered, a list instead of a column a plugin. Of rows from before
-- it is made of the columns there were, which are still written.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS admission_plugins Array(LowCardinality(String))
        DEFAULT arrayConcat(if(admission_namespace_lifecycle != '' OR admission_plugin = 'NamespaceLifecycle', ['NamespaceLifecycle'], []),
            if(admission_plugin NOT IN ('', 'NamespaceLifecycle'), [toString(admission_plugin)], []))
        COMMENT 'admission plugins: the one that refused the request, and those that were evaluated again',
    ADD COLUMN IF NOT EXISTS admission_names Array(LowCardinality(String))
        DEFAULT arrayMap(x -> '', admission_plugins)
        COMMENT 'for each of admission_plugins: the policy, webhook or quota that decided; empty for none',
    ADD COLUMN IF NOT EXISTS admission_outcomes Array(LowCardinality(String))
        DEFAULT arrayMap(x -> if(x = 'NamespaceLifecycle' AND admission_namespace_lifecycle != '', toString(admission_namespace_lifecycle), 'rejected'), admission_plugins)
        COMMENT 'for each of admission_plugins: rejected, pass, match, drift, ambiguous, indeterminate',
    ADD COLUMN IF NOT EXISTS admission_reasons Array(String)
        DEFAULT arrayMap(x -> '', admission_plugins)
        COMMENT 'for each of admission_plugins: what it said or would have said, or what is not known' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS admission_codes Array(Int32)
        DEFAULT arrayMap(x -> if(x = admission_plugin, code, 0), admission_plugins)
        COMMENT 'for each of admission_plugins: the response code where it refused the request, else 0' CODEC(ZSTD(1))
