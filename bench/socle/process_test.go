package socle

import (
	"os/exec"
	"testing"
)

func TestAddressOfProcess(t *testing.T) {
	tests := map[string]struct {
		start func(*exec.Cmd) (*Process, error)
		lines string
		want  string // "" for an error
	}{
		"Socle":            {StartSocle, `Console: http://h:1/console\nSocle is ready at http://h:1\nAPI reference: x\n`, "http://h:1"},
		"Socle that fails": {StartSocle, `Console: http://h:1/console\n`, ""},
		"another server":   {StartProcess, `ready at http://h:2\nmore\n`, "http://h:2"},
		"empty line":       {StartProcess, `\n`, ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, err := test.start(exec.Command("printf", test.lines))
			if err != nil {
				if test.want != "" {
					t.Fatal(err)
				}
				return
			}
			defer p.Stop()

			if p.URL != test.want {
				t.Errorf("URL = %q, want %q", p.URL, test.want)
			}
		})
	}
}
