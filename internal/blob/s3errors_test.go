package blob

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
)

// TestMistake checks that configuration errors name the setting to correct and reveal no secret.
func TestMistake(t *testing.T) {
	t.Parallel()

	refusing := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Amz-Bucket-Region", "eu-central-1")
			w.WriteHeader(status)
			fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>canary</Message></Error>", code)

			return true
		}
	}
	for name, tt := range map[string]struct {
		change  func(*config.Config)
		refused func(http.ResponseWriter, *http.Request) bool
		says    string // BUCKET: the name of the bucket
	}{
		"bucket": {change: func(c *config.Config) {
			c.StorageURL = strings.Replace(c.StorageURL, "s3://", "s3://no-", 1)
		}, says: "bucket no-BUCKET does not exist at http://127.0.0.1:"},
		"access key": {change: func(c *config.Config) {
			c.S3AccessKey = "unknown"
		}, says: "does not know the access key"},
		"secret key": {change: func(c *config.Config) {
			c.S3SecretKey = "canary"
		}, says: "the secret key does not match the access key"},
		"region": {refused: refusing(400, "AuthorizationHeaderMalformed"),
			says: "bucket BUCKET is not in region us-east-1: set region=eu-central-1"},
		"endpoint":      {refused: refusing(301, "PermanentRedirect"), says: "set region=eu-central-1"},
		"session token": {refused: refusing(400, "ExpiredToken"), says: "session token"},
		"rights": {refused: refusing(403, "AccessDenied"),
			says: "the keys lack permission to put and delete objects in bucket BUCKET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			service := blobtest.New(t)
			var c config.Config
			service.Configure(&c)

			if tt.change != nil {
				tt.change(&c)
			}
			if tt.refused != nil {
				service.OnRequest(tt.refused)
			}

			says := strings.ReplaceAll(tt.says, "BUCKET", service.Bucket)
			err := openConfigured(t, c).Check(t.Context())
			mistake, ok := errors.AsType[*ConfigError](err)
			if !ok || !strings.Contains(mistake.Error(), says) || strings.Contains(mistake.Error(), "canary") ||
				!fault.Is(err, fault.Unavailable) {
				t.Errorf("Check = %v, want a mistake that says %q", err, says)
			}
		})
	}
}

// TestRole uses no configured keys: those of the role are requested, and their session token is
// sent.
func TestRole(t *testing.T) {
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).
			Encode(map[string]any{"AccessKeyId": "access",
				"SecretAccessKey": "secret-of-the-test", "Token": "of-the-role",
				"Expiration": time.Now().Add(time.Hour).Format(time.RFC3339)})
	}))
	defer role.Close()

	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}

	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	service := blobtest.New(t)

	var c config.Config
	service.Configure(&c)
	c.S3AccessKey, c.S3SecretKey = "", ""
	if mistake, ok := errors.AsType[*ConfigError](openConfigured(t, c).Check(t.Context())); !ok ||
		!strings.Contains(mistake.Error(), "no credentials") {
		t.Errorf("Check without a role = %v, want a mistake", mistake)
	}

	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)

	var sent []string
	service.OnRequest(func(_ http.ResponseWriter, r *http.Request) bool {
		sent = append(sent, r.Header.Get("X-Amz-Security-Token"))
		r.Header.Del("X-Amz-Security-Token") // unknown to the service

		return false
	})

	err := openConfigured(t, c).Check(t.Context())
	if len(sent) == 0 || sent[0] != "of-the-role" {
		t.Errorf("Check = %v, sent session tokens %q", err, sent)
	}

	c.S3AccessKey, c.S3SecretKey, c.S3SessionToken = "access", "secret-of-the-test", "of-the-keys"
	sent = nil
	if err := openConfigured(t, c).Check(t.Context()); len(sent) == 0 || sent[0] != "of-the-keys" {
		t.Errorf("Check = %v, sent session tokens %q", err, sent)
	}
}
