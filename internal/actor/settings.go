package actor

import (
	"fmt"
	"strings"
)

// Setting is a transaction parameter.
type Setting struct {
	Name  string // constant, or from the configuration: becomes SQL text
	Value []byte
}

// SettingsSQL returns SELECT columns that set parameters for the transaction. The values are
// arguments from $1 on.
func SettingsSQL(settings []Setting) string {
	columns := make([]string, len(settings))
	for i, s := range settings {
		columns[i] = fmt.Sprintf("pg_catalog.set_config('%s', $%d, true)", strings.ReplaceAll(s.Name, "'", "''"), i+1)
	}

	return strings.Join(columns, ", ")
}
