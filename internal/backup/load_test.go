package backup

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// TestReadLine reads lines, one of them longer than the retained part.
func TestReadLine(t *testing.T) {
	t.Parallel()

	r := bufio.NewReader(strings.NewReader("one\n" + strings.Repeat("x", 3*maxLine) + "\ntwo"))
	for i, want := range []int{4, maxLine, 3} {
		line, err := readLine(r)
		if len(line) != want || (err != nil && (err != io.EOF || i < 2)) {
			t.Errorf("line %d: got %d bytes, %v, want %d", i, len(line), err, want)
		}
	}
}
