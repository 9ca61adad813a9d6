// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func auditLog(dir string) string { return filepath.Join(dir, "audit.log") }

// Right is one verb on one resource in one namespace, which is empty for
// cluster-scoped resources.
type Right struct{ Verb, Group, Resource, Namespace string }

func (r Right) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	return r.Verb + " " + resource + " in " + r.Namespace
}

// Asked returns how often the API server granted and refused each right to the
// plugin's ServiceAccount, from its audit log.
func (s *Stack) Asked(t testing.TB) (granted, refused map[Right]int) {
	t.Helper()
	data := must[[]byte](t, "audit log")(os.ReadFile(auditLog(s.dir)))
	granted, refused = map[Right]int{}, map[Right]int{}
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) { // the last one may be half written
		event := must[Object](t, "audit log")(decodeObject(line))
		if event.Str("user", "username") != serviceAccountUser(s.Namespace) {
			continue
		}
		ref := event.Obj("objectRef")
		right := Right{event.Str("verb"), ref.Str("apiGroup"), ref.Str("resource"), ref.Str("namespace")}
		if event.Int("responseStatus", "code") == http.StatusForbidden {
			refused[right]++
		} else {
			granted[right]++
		}
	}
	return granted, refused
}

// Granted returns the rights that examples/rbac.yaml grants, with the stack's namespace.
func (s *Stack) Granted(t testing.TB) []Right {
	t.Helper()
	var granted []Right
	for _, object := range rights(t, s.Namespace) {
		if object.Str("kind") != "Role" {
			continue
		}
		for _, rule := range object.List("rules") {
			for _, group := range rule.Strings("apiGroups") {
				for _, resource := range rule.Strings("resources") {
					for _, verb := range rule.Strings("verbs") {
						granted = append(granted, Right{verb, group, resource, object.Str("metadata", "namespace")})
					}
				}
			}
		}
	}
	return granted
}
