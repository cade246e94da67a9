package archive

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"filippo.io/age"
)

var testKey = Key(bytes.Repeat([]byte{7}, 32))

func encrypt(t *testing.T, k Key, plain []byte) []byte {
	t.Helper()

	e := k.Encrypt(bytes.NewReader(plain))
	defer e.Close()

	sealed, err := io.ReadAll(e)
	if err != nil {
		t.Fatal(err)
	}

	return sealed
}

func decrypt(k Key, sealed io.Reader) ([]byte, error) {
	r, err := k.Decrypt(sealed)
	if err != nil {
		return nil, err
	}

	return io.ReadAll(r)
}

// TestEncrypt encrypts parts of sizes around those of a chunk. Their encrypted size is known
// before.
func TestEncrypt(t *testing.T) {
	t.Parallel()

	for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 2*chunk - 1, 2 * chunk, 3*chunk + 7} {
		plain := bytes.Repeat([]byte("part"), n/4+1)[:n]
		sealed := encrypt(t, testKey, plain)

		if size, err := testKey.EncryptedSize(int64(n)); err != nil || size != int64(len(sealed)) {
			t.Errorf("%d bytes: got encrypted size %d, %v, want %d", n, size, err, len(sealed))
		}
		if got, err := decrypt(testKey, bytes.NewReader(sealed)); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes: decrypted to %d bytes, %v", n, len(got), err)
		}
	}
}

// TestDecryptStored decrypts a part as earlier releases have stored it.
func TestDecryptStored(t *testing.T) {
	t.Parallel()

	const stored = "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNvY2xlClN0NWs0bjVqb1dMTVJkR2EvTms1cndXMXFZbkI3OUQzTFhRWTBi" +
		"aUVVOUREeTBnMUd3b3U1bkJrZWVNCi0tLSA2aVFzRFVSb3BpRXM0NTJFSitXTFdyUXgzNVBhWitLSDBFcnppMFcrRlJBCowUlzuQwv0P" +
		"7/1HdOxOeyHz/mTnGoeWsWU/kqRny4v72ZhSFDIl"

	sealed, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}

	if got, err := decrypt(testKey, bytes.NewReader(sealed)); string(got) != "a dump" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestDecryptDamaged decrypts a part that was changed in every byte, cut off everywhere, extended,
// or encrypted with another key.
func TestDecryptDamaged(t *testing.T) {
	t.Parallel()

	whole := encrypt(t, testKey, []byte("a dump"))
	damages := map[string][]byte{
		"extended":       append(bytes.Clone(whole), 0),
		"of another key": encrypt(t, bytes.Repeat([]byte{8}, 32), []byte("a dump")),
		"not encrypted":  []byte("a dump"),
	}

	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		damages[fmt.Sprintf("byte %d changed", i)] = flipped
		damages[fmt.Sprintf("cut off at %d", i)] = whole[:i]
	}

	for name, sealed := range damages {
		if got, err := decrypt(testKey, bytes.NewReader(sealed)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %q, %v, want %v", name, got, err, ErrDamaged)
		}
	}
}

// TestDecryptFromFailingSource reads a part from a storage that fails, which is no damage.
func TestDecryptFromFailingSource(t *testing.T) {
	t.Parallel()

	away := errors.New("the storage is unavailable")
	whole := encrypt(t, testKey, []byte("a dump"))
	for i := range whole {
		_, err := decrypt(testKey, io.MultiReader(bytes.NewReader(whole[:i]), iotest.ErrReader(away)))
		if !errors.Is(err, away) || errors.Is(err, ErrDamaged) {
			t.Errorf("failure at byte %d: got %v, want %v", i, err, away)
		}
	}
}

// TestEncryptStops closes the reader of an endless part, which is not read any more afterwards.
func TestEncryptStops(t *testing.T) {
	t.Parallel()

	reads := 0
	e := testKey.Encrypt(readerFunc(func(b []byte) (int, error) {
		reads++
		return len(b), nil
	}))
	if _, err := io.CopyN(io.Discard, e, 10*chunk); err != nil {
		t.Fatal(err)
	}

	e.Close()
	e.Wait()

	if reads == 0 { // read without a lock: the race detector checks Wait
		t.Error("nothing was read")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestEncryptFailingSource encrypts a part whose source fails.
func TestEncryptFailingSource(t *testing.T) {
	t.Parallel()

	broken := errors.New("broken")
	e := testKey.Encrypt(io.MultiReader(strings.NewReader("half a"), iotest.ErrReader(broken)))
	defer e.Close()

	if _, err := io.ReadAll(e); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestRecipient tests that the key pair of an install stays the same, and its text form.
func TestRecipient(t *testing.T) {
	t.Parallel()

	const want = "age10v7z9mmy62068a3uf7tf2gf2xz8gax8udpl80h9043nr770euqjqugwr3z"
	if got, err := testKey.Recipient(); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}

	for range 100 {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}

		text := id.String()
		if again := bech32("AGE-SECRET-KEY-", fromBech32(text)); again != text {
			t.Fatalf("got %s, want %s", again, text)
		}
	}
}

// fromBech32 returns the bytes of a valid text, without its checksum.
func fromBech32(text string) (data []byte) {
	bits, have := 0, 0
	for _, letter := range text[strings.LastIndexByte(text, '1')+1 : len(text)-6] {
		bits, have = bits<<5|strings.IndexRune(bech32Letters, letter), have+5
		if have >= 8 {
			data = append(data, byte(bits>>(have-8)))
			have -= 8
		}
	}

	return data
}
