package server

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	metricName  = regexp.MustCompile(`\bsocle_[a-z][a-z0-9_]+\b`)
	declaration = regexp.MustCompile(`fqName: "([a-z0-9_]+)"`)
)

// TestDeployedMetricsExist checks that rules, dashboard and manual name existing metrics, and that
// the manual names all.
func TestDeployedMetricsExist(t *testing.T) {
	t.Parallel()

	known := map[string]bool{}
	m, err := newMetrics("127.0.0.1:0", prometheus.NewRegistry(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.listener.Close()

	for _, c := range []prometheus.Collector{m.requests, state{}, pools{}, backupAges{}} {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)

		for d := range descs {
			known[declaration.FindStringSubmatch(d.String())[1]] = true
		}
	}

	named := map[string]bool{}
	for _, file := range []string{
		"deploy/prometheus/alerts.yaml", "deploy/prometheus/alerts_test.yaml", "deploy/grafana/socle.json",
		"docs/operations.md",
	} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}

		found := metricName.FindAllString(string(text), -1)
		for _, name := range found {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
			named[name] = true
			if !known[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
	}

	for name := range known {
		if !named[name] {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}
