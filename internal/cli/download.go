package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/config"
)

// download writes the response to a file or to standard output. A file is written under a temporary
// name that ends in .part and renamed when complete.
func download(cmd *cobra.Command, c *client.Client, req client.Request) error {
	res, err := c.Open(cmd.Context(), req)
	if err != nil {
		return explain(err)
	}
	defer res.Body.Close()

	name, _ := cmd.Flags().GetString("output")

	progress := newProgress(cmd.ErrOrStderr(), res.ContentLength)
	defer progress.end()

	lines := &lineCounter{}
	body := io.TeeReader(res.Body, io.MultiWriter(progress, lines))

	if name == "-" {
		_, err := io.Copy(cmd.OutOrStdout(), body)
		return explainTruncation(err)
	}

	part, err := os.CreateTemp(dirOf(name), filepath.Base(name)+".*.part")
	if err != nil {
		return writeFailure(name, err)
	}
	defer os.Remove(part.Name())

	_, err = io.Copy(part, body)
	if err == nil {
		err = part.Sync()
	}

	if err = errors.Join(explainTruncation(err), part.Close()); err != nil {
		return writeFailure(name, err)
	}

	progress.end()

	if err := os.Rename(part.Name(), name); err != nil {
		return writeFailure(name, err)
	}

	rows := ""
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") {
		rows = fmt.Sprintf("%d rows, ", max(lines.n-1, 0)) // without the header
	}

	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s%s\n", name, rows, formatSize(progress.done))
	return nil
}

// writeFailure names the file that a command was to write in a failure of its temporary file. Other
// errors, such as of the connection, are returned as they are.
func writeFailure(name string, err error) error {
	path, isPath := errors.AsType[*fs.PathError](err)
	link, isLink := errors.AsType[*os.LinkError](err)
	switch {
	case isPath:
		err = path.Err
	case isLink:
		err = link.Err
	default:
		return err
	}

	return fmt.Errorf("cannot write %s: %w", name, err)
}

// lineCounter counts the lines of a CSV file. Quoted line breaks are part of a line.
type lineCounter struct {
	n      int
	quoted bool
}

// Write counts the lines of b.
func (l *lineCounter) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c == '"':
			l.quoted = !l.quoted
		case c == '\n' && !l.quoted:
			l.n++
		}
	}

	return len(b), nil
}

// explainTruncation explains an incomplete response.
func explainTruncation(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection was interrupted and the partial file discarded: try again")
	}
	return err
}

func addPassphrase(cmd *cobra.Command) {
	cmd.Flags().String("passphrase-file", "",
		"file with the passphrase, - for standard input (default: "+config.ClientPassphrase+")")
}

// passphrase returns the given passphrase, or "".
func (e environment) passphrase(cmd *cobra.Command) (string, error) {
	name, _ := cmd.Flags().GetString("passphrase-file")
	if name == "" {
		return e.value(config.ClientPassphrase), nil
	}

	text, err := readInput(cmd, name)
	if err != nil {
		return "", err
	}

	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("%w: no passphrase in %s", errUsage, name)
	}

	return line, nil
}
