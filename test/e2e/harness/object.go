// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// Object is a JSON object of either API; the tests read few fields of many kinds,
// for which paths are shorter than types. It is read alike whether it was decoded or
// made of Objects.
type Object map[string]any

func asObject(value any) (Object, bool) {
	switch object := value.(type) {
	case Object:
		return object, true
	case map[string]any:
		return object, true
	}
	return nil, false
}

// At returns the value at a path, or nil.
func (o Object) At(path ...string) any {
	var value any = o
	for _, key := range path {
		object, ok := asObject(value)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// Str returns the string at a path, or the empty one.
func (o Object) Str(path ...string) string {
	value, _ := o.At(path...).(string)
	return value
}

// Bool returns the boolean at a path, or false.
func (o Object) Bool(path ...string) bool {
	value, _ := o.At(path...).(bool)
	return value
}

// Int returns the number at a path, or 0.
func (o Object) Int(path ...string) int64 {
	value, _ := o.At(path...).(float64)
	return int64(value)
}

// Obj returns the object at a path, or an empty one.
func (o Object) Obj(path ...string) Object {
	value, _ := asObject(o.At(path...))
	return value
}

// List returns the objects in the list at a path.
func (o Object) List(path ...string) []Object {
	if made, ok := o.At(path...).([]Object); ok {
		return made
	}
	values, _ := o.At(path...).([]any)
	objects := make([]Object, 0, len(values))
	for _, value := range values {
		if object, ok := asObject(value); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// Strings returns the strings in the list at a path.
func (o Object) Strings(path ...string) []string {
	values, _ := o.At(path...).([]any)
	var texts []string
	for _, value := range values {
		texts = append(texts, fmt.Sprint(value))
	}
	return texts
}

// Name returns metadata.name.
func (o Object) Name() string { return o.Str("metadata", "name") }

// UID returns metadata.uid.
func (o Object) UID() string { return o.Str("metadata", "uid") }

// Annotation returns the value of an annotation.
func (o Object) Annotation(key string) string { return o.Str("metadata", "annotations", key) }

// Terminating returns whether the object has a deletionTimestamp.
func (o Object) Terminating() bool { return o.Str("metadata", "deletionTimestamp") != "" }

// Finalizers returns metadata.finalizers.
func (o Object) Finalizers() []string { return o.Strings("metadata", "finalizers") }

func decodeObject(data []byte) (Object, error) {
	var object Object
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("%w in %.200q", err, data)
	}
	return object, nil
}

func names(objects []Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.Name())
	}
	return fmt.Sprintf("%d [%s]", len(objects), strings.Join(all, " "))
}

// decodeYAML returns the documents of a YAML stream.
func decodeYAML(data []byte) ([]Object, error) {
	var objects []Object
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	for {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if document == nil {
			continue
		}
		// Through JSON, so that numbers have the types of a server's response.
		raw, err := json.Marshal(document)
		if err != nil {
			return nil, err
		}
		object, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func readYAML(path string) ([]Object, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decodeYAML(data)
}
