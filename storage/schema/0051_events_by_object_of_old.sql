-- Parts from before get the index in the background, and are read without it until then.
ALTER TABLE {{.Database}}.events{{.OnCluster}} MATERIALIZE INDEX by_object
