// SPDX-License-Identifier: Apache-2.0

// Command definitions prints, as a YAML stream, the CustomResourceDefinitions that Harvester's
// controllers need to start, out of the source trees of Harvester, of its network controller, of
// Longhorn and of CDI, which are its arguments in this order. KubeVirt's are printed by the
// program of that part; Harvester's server makes the rest itself.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func run(trees []string) error {
	if len(trees) != 4 {
		return fmt.Errorf("%d source trees, want those of Harvester, its network controller, Longhorn and CDI", len(trees))
	}
	harvester, network, longhorn, cdi := trees[0], trees[1], trees[2], trees[3]
	for _, pattern := range []string{
		filepath.Join(harvester, "deploy", "charts", "harvester-crd", "templates", "*.yaml"),
		filepath.Join(network, "manifests", "crds", "*.yaml"),
		filepath.Join(longhorn, "k8s", "crds.yaml"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return fmt.Errorf("%s: no such file (%v)", pattern, err)
		}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), "crd-kubevirt-") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			show(string(text))
		}
	}
	return showLiterals(filepath.Join(cdi, "pkg", "operator", "resources", "crds_generated.go"))
}

// An action of a Helm template: Longhorn's have some in their labels.
var action = regexp.MustCompile(`\{\{-.*?\}\}`)

func show(text string) {
	fmt.Printf("---\n%s\n", action.ReplaceAllString(text, ""))
}

// showLiterals prints the values of the map in a generated Go file: each a definition, a
// concatenation of strings.
func showLiterals(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		pair, isPair := node.(*ast.KeyValueExpr)
		if !isPair {
			return true
		}
		text, valueErr := value(pair.Value)
		if valueErr != nil {
			err = fmt.Errorf("%s: %w", path, valueErr)
			return false
		}
		show(text)
		found++
		return false
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("%s: no definitions", path)
	}
	return err
}

func value(expression ast.Expr) (string, error) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		left, err := value(e.X)
		if err != nil {
			return "", err
		}
		right, err := value(e.Y)
		return left + right, err
	case *ast.ParenExpr:
		return value(e.X)
	}
	return "", fmt.Errorf("unexpected %T", expression)
}
