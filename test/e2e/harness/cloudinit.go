// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// cloudConfig is the part of cloud-init's format that the machines support.
type cloudConfig struct {
	WriteFiles []struct {
		Path     string `yaml:"path"`
		Content  string `yaml:"content"`
		Encoding string `yaml:"encoding"`
		Mode     string `yaml:"permissions"`
	} `yaml:"write_files"`
}

// UserDataOf returns the user data in a Secret.
func UserDataOf(secret Object) (string, error) {
	userData, err := base64.StdEncoding.DecodeString(secret.Str("data", "userdata"))
	return string(userData), err
}

// FilesOf returns the files that cloud-init would write for the user data of a Secret.
func FilesOf(secret Object) (map[string]string, error) {
	userData, err := UserDataOf(secret)
	if err != nil {
		return nil, err
	}
	files, err := filesIn(userData)
	if err != nil {
		return nil, fmt.Errorf("the user data of %s: %w", secret.Name(), err)
	}
	return files, nil
}

// ExampleFiles returns the files in a template of examples/, without values.
func ExampleFiles(t testing.TB, name string) map[string]string {
	t.Helper()
	text := must[[]byte](t, name)(os.ReadFile(filepath.Join(Root, "examples", name)))
	return must[map[string]string](t, name)(filesIn(string(text)))
}

func filesIn(userData string) (map[string]string, error) {
	if !strings.HasPrefix(userData, "#cloud-config\n") {
		return nil, fmt.Errorf("no cloud-config: %.80q", userData)
	}
	var config cloudConfig
	if err := yaml.Unmarshal([]byte(userData), &config); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, file := range config.WriteFiles {
		if strings.HasSuffix(file.Path, ".jwt") && file.Mode != "0600" {
			return nil, fmt.Errorf("%s has the mode %q, want 0600", file.Path, file.Mode)
		}
		content := file.Content
		switch file.Encoding {
		case "", "text/plain":
		case "b64", "base64":
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Path, err)
			}
			content = string(decoded)
		default:
			return nil, fmt.Errorf("%s: encoding %q", file.Path, file.Encoding)
		}
		files[file.Path] = content
	}
	return files, nil
}
