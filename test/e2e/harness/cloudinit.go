// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// cloudConfig is the part of cloud-init's format that the machines support.
type cloudConfig struct {
	WriteFiles []struct {
		Path     string `yaml:"path"`
		Content  string `yaml:"content"`
		Encoding string `yaml:"encoding"`
	} `yaml:"write_files"`
}

// filesOf returns the files that cloud-init would write for the user data of a Secret.
func filesOf(secret Object) (map[string]string, error) {
	userData, err := base64.StdEncoding.DecodeString(secret.Str("data", "userdata"))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(userData), "#cloud-config\n") {
		return nil, fmt.Errorf("the user data of %s is no cloud-config: %.80q", secret.Name(), userData)
	}
	var config cloudConfig
	if err := yaml.Unmarshal(userData, &config); err != nil {
		return nil, fmt.Errorf("the user data of %s: %w", secret.Name(), err)
	}
	files := map[string]string{}
	for _, file := range config.WriteFiles {
		content := file.Content
		switch file.Encoding {
		case "", "text/plain":
		case "b64", "base64":
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content))
			if err != nil {
				return nil, fmt.Errorf("%s in the user data of %s: %w", file.Path, secret.Name(), err)
			}
			content = string(decoded)
		default:
			return nil, fmt.Errorf("%s in the user data of %s: encoding %q", file.Path, secret.Name(), file.Encoding)
		}
		files[file.Path] = content
	}
	return files, nil
}
