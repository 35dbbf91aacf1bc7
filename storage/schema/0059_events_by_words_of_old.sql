-- Parts from before get the indexes in the background, and are read without them until then.
ALTER TABLE {{.Database}}.events{{.OnCluster}} MATERIALIZE INDEX by_words, MATERIALIZE INDEX by_subject
