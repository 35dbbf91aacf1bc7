package graph

// PodContent reads a pod (JSON, as in a request or response body) as far as the graph needs
// it. A pod without metadata.name leaves generic ephemeral volumes out.
func PodContent(object []byte) (Content, error) { return Content{}, nil }

// VolumeContent reads a persistent volume.
func VolumeContent(object []byte) (Content, error) { return Content{}, nil }

// NodeContent reads an object of which only spec.nodeName counts: a volume attachment, a
// resource slice, a pod certificate request.
func NodeContent(object []byte) (Content, error) { return Content{}, nil }
