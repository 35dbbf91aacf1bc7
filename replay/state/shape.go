package state

import "github.com/retrial-io/retrial/ingest/event"

// The members that are read of bodies, be they objects, lists of them, statuses or options:
// those of the types that this package and graph unmarshal bodies into. Of a volume all of spec
// is read, whose source is one of many members.
var (
	shapeRead   = shapeOfBody(shapeOfSpec())
	shapeVolume = shapeOfBody(nil)
)

// shapeOfBody returns the shape of a body with such a spec.
func shapeOfBody(spec *event.Shape) *event.Shape {
	object := map[string]*event.Shape{
		"kind": nil, "apiVersion": nil, "type": nil, "reduced": nil, "target": nil, "deleteOptions": nil,
		"propagationPolicy": nil, "orphanDependents": nil, "gracePeriodSeconds": nil,
		"metadata": event.ShapeOf(map[string]*event.Shape{
			"name": nil, "generateName": nil, "namespace": nil, "uid": nil, "resourceVersion": nil, "creationTimestamp": nil,
			"deletionTimestamp": nil, "deletionGracePeriodSeconds": nil, "finalizers": nil,
			"annotations": event.ShapeOf(map[string]*event.Shape{
				annotationAccount: nil, annotationAccountUID: nil, "kubernetes.io/config.mirror": nil,
			}),
			"labels": event.ShapeOf(map[string]*event.Shape{labelLastUsed: nil, labelInvalidSince: nil}),
		}),
		"data": event.ShapeOf(map[string]*event.Shape{
			"token-id": nil, "expiration": nil, "usage-bootstrap-authentication": nil, "auth-extra-groups": nil,
		}),
		"spec": spec,
		"status": event.ShapeOf(map[string]*event.Shape{
			"phase": nil, "certificate": nil, "resourceClaimStatuses": nil, "extendedResourceClaimStatus": nil,
		}),
		"details": event.ShapeOf(map[string]*event.Shape{"uid": nil}),
	}
	item := event.ShapeOf(object)
	list := map[string]*event.Shape{"items": item}
	for name, shape := range object {
		list[name] = shape
	}
	list["rows"] = event.ShapeOf(map[string]*event.Shape{"object": item})
	return event.ShapeOf(list)
}

// shapeOfSpec returns the shape of the specs of all kinds but volumes.
func shapeOfSpec() *event.Shape {
	container := event.ShapeOf(map[string]*event.Shape{
		"envFrom": nil, "env": event.ShapeOf(map[string]*event.Shape{"valueFrom": nil}),
	})
	return event.ShapeOf(map[string]*event.Shape{
		"finalizers": nil, "nodeName": nil, "serviceAccountName": nil, "imagePullSecrets": nil, "volumes": nil, "resourceClaims": nil,
		"terminationGracePeriodSeconds": nil, "signerName": nil, "username": nil,
		"initContainers": container, "containers": container, "ephemeralContainers": container,
	})
}
