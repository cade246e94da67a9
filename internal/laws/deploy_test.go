package laws

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/config"
)

var settingName = regexp.MustCompile(`\bSOCLE_[A-Z0-9_]+\b`)

// deployVariables are the variables of the files in deploy/ that are not settings of the server.
var deployVariables = []string{"SOCLE_HOST"}

// TestDeployedSettingsExist checks the settings that the files in deploy/ name: the server refuses
// to start with an unknown one.
func TestDeployedSettingsExist(t *testing.T) {
	t.Parallel()

	known := slices.Clone(deployVariables)
	for _, s := range config.Settings() {
		known = append(known, s.Name)
	}

	found := 0
	err := filepath.WalkDir(filepath.Join(root(t), "deploy"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		text, err := os.ReadFile(path)
		for _, name := range settingName.FindAllString(string(text), -1) {
			if !slices.Contains(known, strings.TrimSuffix(name, "_FILE")) {
				t.Errorf("%s: there is no setting %s", path, name)
			}
			found++
		}

		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%v: found %d settings in deploy/, want some", err, found)
	}
}

// TestRenderHA fills in the values of deploy/ha: none is missing, and none is left over.
func TestRenderHA(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(root(t), "deploy", "ha")
	text, err := os.ReadFile(filepath.Join(dir, "cluster.env"))
	if err != nil {
		t.Fatal(err)
	}

	const password = `a|b&c\d`
	values, env := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if value == "" {
			value = password
		}
		values[name], env = value, env+name+"="+value+"\n"
	}

	filled := filepath.Join(t.TempDir(), "cluster.env")
	if err := os.WriteFile(filled, []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}

	used := map[string]bool{}
	for _, name := range []string{"etcd.env", "patroni.yml", "haproxy.cfg", "socle.env", "pgbackrest.conf"} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}

		want := os.Expand(string(source), func(key string) string {
			if used[key] = true; values[key] == "" {
				t.Errorf("%s: %s has no value in cluster.env", name, key)
			}
			return values[key]
		})
		render := exec.CommandContext(t.Context(), filepath.Join(dir, "render.sh"), filled, filepath.Join(dir, name))
		got, err := render.Output()
		if err != nil || string(got) != want {
			t.Errorf("%s: %v: got\n%s\nwant\n%s", name, err, got, want)
		}
	}

	for name := range values {
		if !used[name] {
			t.Errorf("cluster.env: no file has %s", name)
		}
	}

	unfilled := exec.CommandContext(t.Context(), filepath.Join(dir, "render.sh"), filepath.Join(dir, "cluster.env"),
		filepath.Join(dir, "patroni.yml"))
	if out, err := unfilled.Output(); err == nil {
		t.Errorf("without passwords: got\n%s", out)
	}
}
