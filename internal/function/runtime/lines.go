package runtime

import (
	"bufio"
	"io"
	"log"
	"os"
	"strings"
)

// Streams of a process.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// MaxLine bounds a line in bytes. The rest of a longer one is dropped.
const MaxLine = 10_000

// Line is a line that a process wrote.
type Line struct{ Stream, Text string }

// discardLog takes what the HTTP server says about connections of a process.
var discardLog = log.New(io.Discard, "", 0)

// readLines passes on the lines of a stream until its end.
func readLines(f *os.File, stream string, record func(Line)) {
	defer f.Close()

	r := bufio.NewReaderSize(f, MaxLine)
	for {
		text, err := r.ReadSlice('\n')
		if len(text) > 0 {
			line := strings.TrimSuffix(string(text), "\n")
			record(Line{stream, strings.ToValidUTF8(strings.ReplaceAll(line, "\x00", ""), "\uFFFD")})
		}

		for err == bufio.ErrBufferFull {
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}
