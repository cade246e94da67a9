package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// digestOf returns the digest of a text.
func digestOf(text string) Digest {
	sum := sha256.Sum256([]byte(text))
	return NewDigest(int64(len(text)), sum[:])
}

// TestContents reads contents back in the order of their addition, also twice at once.
func TestContents(t *testing.T) {
	t.Parallel()

	var c Contents
	defer c.Close()

	const n = sumBatch + 3
	want := make([]Content, n)
	for i := range want {
		want[i] = Content{digestOf(fmt.Sprint(i)), uuid.New()}
		if err := c.Add(want[i]); err != nil {
			t.Fatal(err)
		}
	}

	for i := range 2 {
		var got []Content
		for content, err := range c.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, content)
		}

		if !slices.Equal(got, want) {
			t.Fatalf("reading %d: got %d contents, want %d, in the order of their addition", i, len(got), len(want))
		}
	}

	var batches []int
	i := 0
	for batch, err := range c.Sums() {
		if err != nil {
			t.Fatal(err)
		}

		batches = append(batches, len(batch))
		for _, sum := range batch {
			if hex.EncodeToString(sum) != want[i].SHA256 {
				t.Fatalf("got sum %x at %d, want %s", sum, i, want[i].SHA256)
			}
			i++
		}
	}

	if diff := cmp.Diff([]int{sumBatch, 3}, batches); diff != "" || c.Len() != n {
		t.Errorf("got %d contents in batches %v", c.Len(), batches)
	}
}

// TestNoContents reads contents that nobody has added.
func TestNoContents(t *testing.T) {
	t.Parallel()

	for _, c := range []*Contents{nil, {}} {
		for range c.All() {
			t.Errorf("%v has a content", c)
		}
		for range c.Sums() {
			t.Errorf("%v has a sum", c)
		}

		if c.Len() != 0 {
			t.Errorf("%v has %d contents", c, c.Len())
		}

		c.Close()
	}
}

// TestInvalidContents adds contents that no file has.
func TestInvalidContents(t *testing.T) {
	t.Parallel()

	sum := strings.Repeat("a", 64)
	for _, d := range []Digest{{-1, sum}, {1, ""}, {1, sum[:62]}, {1, sum + "aa"}, {1, "../" + sum[3:]},
		{1, strings.ToUpper(sum)}, {1, sum[:63] + "g"}} {
		var c Contents
		if err := c.Add(Content{Digest: d}); !errors.Is(err, ErrDamaged) || c.Len() != 0 {
			t.Errorf("%v: got %v and %d contents, want %v", d, err, c.Len(), ErrDamaged)
		}
	}
}

// TestVerify reads bytes that are, or are not, those of a digest.
func TestVerify(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		bytes string
		want  error
	}{{"a file", nil}, {"a fil", ErrMismatch}, {"a file.", ErrMismatch}, {"b file", ErrMismatch}, {"", ErrMismatch}} {
		got, err := io.ReadAll(Verify(strings.NewReader(c.bytes), digestOf("a file")))
		if !errors.Is(err, c.want) || string(got) != c.bytes {
			t.Errorf("%q: got %q, %v, want %v", c.bytes, got, err, c.want)
		}
	}
}
