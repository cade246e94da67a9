package laws

import (
	"io/fs"
	"os"
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
