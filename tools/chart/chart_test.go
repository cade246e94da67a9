// Package chart checks the Helm chart of deploy/chart: what it renders is valid for each version
// of Kubernetes whose schemas kubectl-validate carries, and the resources of operators decode
// without an unknown field. It is a module of its own, so that the server's has none of this.
package chart

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cnpg "github.com/cloudnative-pg/cloudnative-pg/api/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// program is kubectl-validate. Its libraries are older than those of the operators, so that one
// module cannot have both.
var program = flag.String("kubectl-validate", "kubectl-validate", "path of kubectl-validate")

const folder = "../../deploy/chart"

// versions are those of Kubernetes whose schemas kubectl-validate carries, of the ones that the
// chart admits.
var versions = []string{"1.27", "1.28", "1.29", "1.30"}

// operators are the types of resources that operators define, by API version and kind.
var operators = map[string]func() any{
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
	"postgresql.cnpg.io/v1 Cluster":           func() any { return &cnpg.Cluster{} },
	"postgresql.cnpg.io/v1 ScheduledBackup":   func() any { return &cnpg.ScheduledBackup{} },
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(folder + "/examples/values/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files of values, %v; want 5", len(files), err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()

			values, err := chartutil.ReadValuesFile(file)
			if err != nil {
				t.Fatal(err)
			}

			resources, err := render(values)
			if err != nil {
				t.Fatal(err)
			}

			check(t, resources)
		})
	}
}

// TestDatabase checks the example of a database.
func TestDatabase(t *testing.T) {
	text, err := os.ReadFile(folder + "/examples/database.yaml")
	if err != nil {
		t.Fatal(err)
	}

	resources, err := split(text)
	if err != nil || len(resources) == 0 {
		t.Fatalf("%d resources, %v", len(resources), err)
	}

	check(t, resources)
}

func TestRefusedValues(t *testing.T) {
	tests := map[string]struct{ values, want string }{
		"nothing":                   {``, "publicURL"},
		"a path in the public URL":  {`{publicURL: "https://h/x", storageURL: "s3://b", secret: s}`, "publicURL"},
		"a disk that pods lack":     {`{publicURL: "https://h", storageURL: "file:///x", secret: s}`, "storageURL"},
		"a misspelled value":        {`{publicURL: "https://h", storageURL: "s3://b", secret: s, replica: 3}`, "replica"},
		"a setting of the chart":    {`{publicURL: "https://h", storageURL: "s3://b", secret: s, settings: {SOCLE_ADDR: x}}`, "SOCLE_ADDR"},
		"a number as a setting":     {`{publicURL: "https://h", storageURL: "s3://b", secret: s, settings: {SOCLE_PASSWORD_MIN: 9}}`, "SOCLE_PASSWORD_MIN"},
		"a listener without a key":  {`{publicURL: "https://h", storageURL: "s3://b", secret: s, postgres: {enabled: true}}`, "tlsSecret"},
		"a name with a line's end":  {`{publicURL: "https://h", storageURL: "s3://b", secret: s, trustedProxies: 1}`, "trustedProxies"},
		"a scratch disk of no size": {`{publicURL: "https://h", storageURL: "s3://b", secret: s, scratch: big}`, "scratch"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			values, err := chartutil.ReadValues([]byte(test.values))
			if err != nil {
				t.Fatal(err)
			}

			if _, err := render(values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that names %s", err, test.want)
			}
		})
	}
}

// TestQuoting checks that no text of a value becomes YAML of its own.
func TestQuoting(t *testing.T) {
	hostile := "x\"\n  evil: true #'{{ 1 }}"
	values := chartutil.Values{
		"publicURL": "https://h", "storageURL": "s3://b/" + hostile, "secret": "s", "trustedProxies": hostile,
		"mailFrom": hostile, "settings": map[string]any{"SOCLE_LOG_LEVEL": hostile},
	}

	resources, err := render(values)
	if err != nil {
		t.Fatal(err)
	}

	n := 0
	for _, text := range resources {
		var object struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Env []struct{ Name, Value string }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}

		for _, c := range object.Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				if strings.HasSuffix(e.Value, hostile) {
					n++
				}
			}
		}
	}

	if n != 4 {
		t.Errorf("%d values arrive unchanged, want 4", n)
	}
}

// render returns the resources of the chart with values.
func render(values chartutil.Values) (resources [][]byte, err error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}

	options := chartutil.ReleaseOptions{Name: "socle", Namespace: "backend", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}

	files, err := (engine.Engine{Strict: true}).Render(c, all)
	if err != nil {
		return nil, err
	}

	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}

		of, err := split([]byte(text))
		if err != nil {
			return nil, err
		}

		resources = append(resources, of...)
	}

	return resources, nil
}

// split returns the resources of a file.
func split(text []byte) (resources [][]byte, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return resources, nil
		}
		if err != nil {
			return nil, err
		}

		if len(bytes.TrimSpace(document)) > 0 {
			resources = append(resources, slices.Clone(document))
		}
	}
}

// check validates resources.
func check(t *testing.T, resources [][]byte) {
	t.Helper()

	dir := t.TempDir()
	for i, text := range resources {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}

		name := kind.APIVersion + " " + kind.Kind
		if object, ok := operators[name]; ok {
			if err := yaml.UnmarshalStrict(text, object()); err != nil {
				t.Errorf("%s: %v", name, err)
			}

			continue
		}

		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, version := range versions {
		out, err := exec.Command(*program, "--version", version, dir).CombinedOutput()
		if err != nil {
			t.Errorf("Kubernetes %s: %v\n%s", version, err, out)
		}
	}
}
