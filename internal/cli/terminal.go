package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// terminal returns the file descriptor of a terminal.
func terminal(stream any) (fd int, ok bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}

	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// widthOf returns the columns of a terminal; 0 for anything else.
func widthOf(w io.Writer) int {
	fd, ok := terminal(w)
	if !ok {
		return 0
	}

	width, _, err := term.GetSize(fd)
	if err != nil {
		return 0
	}

	return width
}

// destructive reports whether the command asks for confirmation.
func (r *remote) destructive() bool {
	return r.Method == http.MethodDelete || r.ID == "restoreBackup" || r.ID == "undoRestore"
}

// confirm asks on a terminal whether to go on. Without a terminal it demands --yes.
func (r *remote) confirm(cmd *cobra.Command, args []string) error {
	if yes, _ := cmd.Flags().GetBool("yes"); yes || !r.destructive() || r.flags["target"].String() == "new" {
		return nil
	}

	what := strings.TrimRight(r.Summary+": "+strings.Join(args, " "), ": ")
	if _, ok := terminal(cmd.InOrStdin()); !ok {
		return fmt.Errorf("%w: %s needs --yes if no terminal can ask for confirmation", errUsage, pathOf(cmd))
	}

	yes, err := ask(cmd, what+". Continue?")
	if err != nil {
		return err
	}
	if !yes {
		return errCanceled
	}

	return nil
}

// errCanceled reports that a person or a signal stopped the command in time.
var errCanceled = errors.New("canceled; nothing has changed")

// ask asks a question on a terminal. It fails with errCanceled if the command is interrupted
// meanwhile.
func ask(cmd *cobra.Command, question string) (bool, error) {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", sanitize(question))
	answer, err := readLine(canceledReader{cmd.Context(), cmd.InOrStdin()})
	if cmd.Context().Err() != nil {
		return false, errCanceled
	}
	answer = strings.ToLower(answer)

	return answer == "y" || answer == "yes", err
}

func readLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}

	return strings.TrimRight(line, "\r\n"), nil
}

// readPassword prompts for a password on a terminal, without echo. Otherwise it reads a line.
func readPassword(cmd *cobra.Command, prompt string) (string, error) {
	fd, ok := terminal(cmd.InOrStdin())
	if !ok {
		line, err := readLine(cmd.InOrStdin())
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}

		return line, nil
	}

	state, err := term.MakeRaw(fd) // before the prompt, so that input typed ahead is not shown either
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, state) }()

	password, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{cmd.InOrStdin(), cmd.ErrOrStderr()}, "").ReadPassword(prompt)
	if errors.Is(err, io.EOF) { // Ctrl-C, too
		return "", errors.New("canceled")
	}

	return password, err
}

// secretMembers are body members that no argument may hold, because arguments are visible to all
// users of the machine. Each has a flag that names a file.
var secretMembers = []string{"password", "secret"}

func addSecret(cmd *cobra.Command, name string, required bool) {
	meaning := "file with the " + name + ", - to be asked for it or to read it from standard input"
	if required {
		meaning += " (default -)"
	}

	cmd.Flags().String(name+"-file", "", meaning)
}

// readSecret returns a secret member; "" if there is none. A password is one line. Another secret,
// such as a private key, is the whole text without the newline at its end.
func (r *remote) readSecret(cmd *cobra.Command, member string, inFile bool) (string, error) {
	name, _ := cmd.Flags().GetString(member + "-file")
	required := slices.Contains(r.body.Required, member)
	_, asks := terminal(cmd.InOrStdin())
	switch {
	case name == "" && (inFile || !required):
		return "", nil
	case member != "password" && (!asks || (name != "" && name != "-")):
		text, err := readInput(cmd, cmp.Or(name, "-"))
		return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
	case name != "" && name != "-":
		text, err := os.ReadFile(name)
		line, _, _ := strings.Cut(string(text), "\n")

		return strings.TrimSuffix(line, "\r"), err
	}

	prompt := strings.ToUpper(member[:1]) + member[1:]
	secret, err := readPassword(cmd, prompt+": ")
	if err != nil || !asks || !newPassword[r.ID] {
		return secret, err
	}

	repetition, err := readPassword(cmd, prompt+" again: ")
	if err == nil && repetition != secret {
		err = errors.New("the two passwords differ")
	}

	return secret, err
}

// newPassword are the operations that set the password that they take.
var newPassword = map[string]bool{"createUser": true, "updateUser": true, "resetPassword": true}
