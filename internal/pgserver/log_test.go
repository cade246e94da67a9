package pgserver

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestLog(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)

	const secret = "a canary in a statement"
	if _, err := connect(t, s).Exec(t.Context(), "select '"+secret+"'::int"); err == nil {
		t.Fatal("a text became a number")
	}

	path := filepath.Join(c.Dir, logName)
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte("ready to accept connections")) {
		t.Errorf("%v: the log does not tell of the start:\n%s", err, text)
	}
	if bytes.Contains(text, []byte(secret)) {
		t.Errorf("the log tells what a statement said:\n%s", text)
	}

	runServer(t, s)
	if err := os.Truncate(path, maxLogSize); err != nil {
		t.Fatal(err)
	}

	execute(t, s, "do $$ begin raise log 'the last line before'; end $$")

	eventually(t, "the log is bounded", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() < maxLogSize
	})

	execute(t, s, "do $$ begin raise log 'the first line after'; end $$")

	text, err = os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte("the first line after")) || bytes.HasPrefix(text, []byte{0}) {
		t.Errorf("%v: the log does not go on: %.200q", err, text)
	}

	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxLogSize {
		t.Errorf("the log before: %v, %v", info, err)
	}
}
