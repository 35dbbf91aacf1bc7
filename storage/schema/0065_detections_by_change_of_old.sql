-- Parts from before get the indexes in the background, and are read without them until then. Of past months nothing is merged any more,
-- so their parts would never get them.
ALTER TABLE {{.Database}}.detections{{.OnCluster}} MATERIALIZE INDEX by_changed, MATERIALIZE INDEX by_slot
