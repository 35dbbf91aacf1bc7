package event

import (
	"slices"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// The members that are kept of bodies, be they objects, lists of them, statuses or options: those
// that the replica reads. Of a volume all of spec is read, whose source is one of many members; only
// roles and bindings have rules and subjects.
var (
	ShapeKept       = shapeOfBody(shapeOfSpec())
	ShapeKeptVolume = shapeOfBody(nil)
	shapeKeptRBAC   = shapeOfBody(shapeOfSpec(), "rules", "subjects", "roleRef", "aggregationRule", memberCut)
)

// keptShape returns the shape of the bodies of a write.
func (t *writeTarget) keptShape() *jsontext.Shape {
	switch {
	case t.isRBAC():
		return shapeKeptRBAC
	case t.group == "" && t.resource == "persistentvolumes":
		return ShapeKeptVolume
	}
	return ShapeKept
}

// isRBAC reports whether a write is of a role or binding.
func (t *writeTarget) isRBAC() bool {
	return t.group == "rbac.authorization.k8s.io" && t.sub == "" &&
		slices.Contains([]string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}, t.resource)
}

// shapeOfBody returns the shape of a body with the spec and further members.
func shapeOfBody(spec *jsontext.Shape, more ...string) *jsontext.Shape {
	object := map[string]*jsontext.Shape{
		"kind": nil, "apiVersion": nil, "type": nil, "reduced": nil, "target": nil, "deleteOptions": nil,
		"propagationPolicy": nil, "orphanDependents": nil, "gracePeriodSeconds": nil, "dryRun": nil,
		"metadata": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"name": nil, "generateName": nil, "namespace": nil, "uid": nil, "resourceVersion": nil, "creationTimestamp": nil,
			"deletionTimestamp": nil, "deletionGracePeriodSeconds": nil, "finalizers": nil,
			"annotations": jsontext.ShapeOf(map[string]*jsontext.Shape{
				"kubernetes.io/service-account.name": nil, "kubernetes.io/service-account.uid": nil, "kubernetes.io/config.mirror": nil,
			}),
			"labels": jsontext.ShapeOf(map[string]*jsontext.Shape{"kubernetes.io/legacy-token-last-used": nil,
				"kubernetes.io/legacy-token-invalid-since": nil}),
		}),
		"data": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"token-id": nil, "expiration": nil, "usage-bootstrap-authentication": nil, "auth-extra-groups": nil,
		}),
		"spec": spec,
		"status": jsontext.ShapeOf(map[string]*jsontext.Shape{
			"phase": nil, "certificate": nil, "resourceClaimStatuses": nil, "extendedResourceClaimStatus": nil,
		}),
		"details": jsontext.ShapeOf(map[string]*jsontext.Shape{"uid": nil}),
	}
	for _, name := range more {
		object[name] = nil
	}
	item := jsontext.ShapeOf(object)
	list := map[string]*jsontext.Shape{"items": item}
	for name, shape := range object {
		list[name] = shape
	}
	list["rows"] = jsontext.ShapeOf(map[string]*jsontext.Shape{"object": item})
	return jsontext.ShapeOf(list)
}

// shapeOfSpec returns the shape of the specs of all kinds except volumes.
func shapeOfSpec() *jsontext.Shape {
	container := jsontext.ShapeOf(map[string]*jsontext.Shape{
		"envFrom": nil, "env": jsontext.ShapeOf(map[string]*jsontext.Shape{"valueFrom": nil}),
	})
	return jsontext.ShapeOf(map[string]*jsontext.Shape{
		"finalizers": nil, "nodeName": nil, "serviceAccountName": nil, "imagePullSecrets": nil, "volumes": nil, "resourceClaims": nil,
		"terminationGracePeriodSeconds": nil, "signerName": nil, "username": nil,
		"initContainers": container, "containers": container, "ephemeralContainers": container,
	})
}
