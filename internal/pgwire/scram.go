package pgwire

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	mechanism = "SCRAM-SHA-256"

	// Iterations is the number of iterations that every client accepts: some refuse fewer. Only the
	// client computes them.
	Iterations = 4096

	maxSASLMessage = 4 << 10 // bytes
)

// ErrPassword is the failure for a client with a wrong password.
var ErrPassword = errors.New("pgwire: wrong password")

// Verifier verifies a password by SCRAM-SHA-256 and does not reveal it (RFC 5803).
type Verifier struct {
	Iterations                 int
	Salt, StoredKey, ServerKey []byte
}

// NewVerifier returns a password's verifier. The password must be ASCII.
func NewVerifier(password string, iterations int) Verifier {
	salt := make([]byte, 16)
	rand.Read(salt) // never fails

	key, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic("pgwire: verifier: " + err.Error()) // only sizes that FIPS 140 forbids
	}

	storedKey := sha256.Sum256(mac(key, "Client Key"))
	return Verifier{iterations, salt, storedKey[:], mac(key, "Server Key")}
}

// String returns the form in which PostgreSQL stores the verifier.
func (v Verifier) String() string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", mechanism, v.Iterations, encode(v.Salt), encode(v.StoredKey),
		encode(v.ServerKey))
}

// ParseVerifier parses the form that [Verifier.String] returns.
func ParseVerifier(text string) (Verifier, error) {
	errForm := errors.New("pgwire: not a SCRAM verifier")

	text, ok := strings.CutPrefix(text, mechanism+"$")
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '$' || r == ':' })
	if !ok || len(parts) != 4 {
		return Verifier{}, errForm
	}

	iterations, err := strconv.Atoi(parts[0])
	if err != nil {
		return Verifier{}, errForm
	}

	v := Verifier{Iterations: iterations}
	for i, field := range []*[]byte{&v.Salt, &v.StoredKey, &v.ServerKey} {
		if *field, err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return Verifier{}, errForm
		}
	}

	return v, nil
}

// Authenticate verifies a client by v's password. It fails with [ErrPassword] if the password is
// wrong, and leaves it to the caller to tell the client. On success the caller continues with
// AuthenticationOk.
func Authenticate(conn io.ReadWriter, v Verifier) error {
	if err := Send(conn, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{mechanism}}); err != nil {
		return err
	}

	body, err := readMessage(conn, 'p', maxSASLMessage)
	if err != nil {
		return err
	}

	var first pgproto3.SASLInitialResponse
	if err := first.Decode(body); err != nil {
		return err
	}
	if first.AuthMechanism != mechanism {
		return fmt.Errorf("pgwire: unknown mechanism %q", first.AuthMechanism)
	}

	e, challenge, err := newExchange(v, string(first.Data))
	if err != nil {
		return err
	}

	if err := Send(conn, &pgproto3.AuthenticationSASLContinue{Data: []byte(challenge)}); err != nil {
		return err
	}

	if body, err = readMessage(conn, 'p', maxSASLMessage); err != nil {
		return err
	}

	final, err := e.verify(string(body))
	if err != nil {
		return err
	}

	return Send(conn, &pgproto3.AuthenticationSASLFinal{Data: []byte(final)})
}

// exchange is the server's state between a client's two messages (RFC 5802).
type exchange struct {
	verifier      Verifier
	header        string // the client's gs2-header
	nonce         string
	firstMessages string // client-first-message-bare and server-first-message
}

// newExchange parses the client's first message and returns the server's first message.
func newExchange(v Verifier, message string) (*exchange, string, error) {
	// The header is n,, or y,, without an identity: channel binding is not offered.
	parts := strings.SplitN(message, ",", 3)
	if len(parts) != 3 || (parts[0] != "n" && parts[0] != "y") || parts[1] != "" {
		return nil, "", errors.New("pgwire: invalid first message of SCRAM")
	}

	// PostgreSQL ignores the name n= too; the startup packet has the user.
	attributes := strings.Split(parts[2], ",")
	if len(attributes) < 2 || !strings.HasPrefix(attributes[0], "n=") || len(attributes[1]) < 3 ||
		!strings.HasPrefix(attributes[1], "r=") {
		return nil, "", errors.New("pgwire: invalid first message of SCRAM")
	}

	e := &exchange{verifier: v, header: parts[0] + ",,", nonce: attributes[1][2:] + rand.Text()}
	challenge := fmt.Sprintf("r=%s,s=%s,i=%d", e.nonce, base64.StdEncoding.EncodeToString(v.Salt), v.Iterations)
	e.firstMessages = parts[2] + "," + challenge

	return e, challenge, nil
}

// verify checks the client's final message and returns the server's final message.
func (e *exchange) verify(message string) (string, error) {
	bare, proofText, ok := strings.Cut(message, ",p=")
	if !ok || bare != "c="+base64.StdEncoding.EncodeToString([]byte(e.header))+",r="+e.nonce {
		return "", errors.New("pgwire: invalid final message of SCRAM")
	}

	proof, err := base64.StdEncoding.DecodeString(proofText)
	if err != nil || len(proof) != sha256.Size {
		return "", errors.New("pgwire: invalid proof of SCRAM")
	}

	authMessage := e.firstMessages + "," + bare
	signature := mac(e.verifier.StoredKey, authMessage)
	for i := range proof {
		proof[i] ^= signature[i] // now the client key
	}

	if key := sha256.Sum256(proof); !hmac.Equal(key[:], e.verifier.StoredKey) {
		return "", ErrPassword
	}

	return "v=" + base64.StdEncoding.EncodeToString(mac(e.verifier.ServerKey, authMessage)), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))

	return h.Sum(nil)
}
