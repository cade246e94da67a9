package pgdump

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
)

// secrets is the table of Supabase's Vault. Its key stays with Supabase, so nothing else can
// decrypt its rows.
const secrets = "vault.secrets"

const (
	maxSecretNotes = 1000 // as many secrets as a project may have
	maxSecretName  = 255  // bytes
)

// nameSecrets leaves out the rows of a COPY of secrets, with a note for each.
func (i *importer) nameSecrets(s statement, columns []string) error {
	rows := i.reader.data()
	lines := bufio.NewReaderSize(rows, 64<<10)
	at := slices.Index(columns, "name")
	for n := 0; n < maxSecretNotes; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}

		values := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
		name := "without a name"
		if at >= 0 && at < len(values) && values[at] != `\N` {
			name = strings.ToValidUTF8(values[at][:min(len(values[at]), maxSecretName)], "")
		}
		i.note(s, note{Schemas, "secret " + name + ": Supabase has its key, create it again by vault.create_secret"})

		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}

	_, err := io.Copy(io.Discard, lines)
	return err
}
