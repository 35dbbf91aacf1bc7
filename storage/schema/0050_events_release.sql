-- Which release of Kubernetes a request was judged by. Rows from before it do not say.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS release LowCardinality(String) COMMENT 'the release of Kubernetes by whose rules the request was judged, such as 1.36; empty where nobody knows it'
