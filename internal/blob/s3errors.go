package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/socle-dev/socle/internal/fault"
)

// s3Error gives a request's error a kind.
func s3Error(err error) error {
	if err == nil {
		return nil
	}

	if e, none := errors.AsType[*credentialsError](err); none {
		return unavailable(e)
	}

	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || response.Response == nil {
		return unavailable(err)
	}

	switch status := response.HTTPStatusCode(); {
	case status == http.StatusNotFound && !hasCode(err, "NoSuchBucket"):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		return fault.New(fault.Conflict, "the key is already in use").WithCause(err)
	case status == http.StatusBadRequest && !hasCode(err, "RequestTimeout"), status == http.StatusMethodNotAllowed,
		status == http.StatusRequestedRangeNotSatisfiable:
		return err // an invalid request
	}

	return unavailable(err) // throttled or not authorized yet
}

// hasCode reports whether err is an S3 error with a code.
func hasCode(err error, code string) bool {
	e, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && e.ErrorCode() == code
}

// credentialsError reports that the default chain found no credentials.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "no credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// ConfigError is a configuration error in the storage, with a message for the operator. A retry
// does not help.
type ConfigError struct {
	message string
	err     error
}

func (e *ConfigError) Error() string { return e.message }

// Unwrap returns the service's error.
func (e *ConfigError) Unwrap() error { return e.err }

// diagnose turns a request's error into one that tells the operator how to correct it.
func (b *bucket) diagnose(err error) error {
	if err == nil {
		return nil
	}

	if _, none := errors.AsType[*credentialsError](err); none {
		return &ConfigError{
			"no credentials for the storage were found: set SOCLE_S3_ACCESS_KEY and SOCLE_S3_SECRET_KEY, " +
				"or run on a machine with an IAM role",
			err,
		}
	}

	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || response.Response == nil {
		return fmt.Errorf("no response from %s for bucket %s: %w", b.address, *b.name, err)
	}

	mistake := func(format string, args ...any) error { return &ConfigError{fmt.Sprintf(format, args...), err} }
	status := response.HTTPStatusCode()
	region := response.Response.Header.Get("X-Amz-Bucket-Region")
	switch {
	case hasCode(err, "AuthorizationHeaderMalformed"), hasCode(err, "PermanentRedirect"),
		hasCode(err, "IllegalLocationConstraintException"), status/100 == 3:
		if region == "" {
			region = "…"
		}

		return mistake("bucket %s is not in region %s: set region=%s in SOCLE_STORAGE_URL", *b.name,
			b.client.Options().Region, region)
	case hasCode(err, "InvalidAccessKeyId"), hasCode(err, "XAdminUserNotFound"): // Amazon S3 and versitygw
		return mistake("%s does not know the access key: correct SOCLE_S3_ACCESS_KEY", b.address)
	case hasCode(err, "SignatureDoesNotMatch"):
		return mistake("the secret key does not match the access key: correct SOCLE_S3_SECRET_KEY")
	case hasCode(err, "ExpiredToken"), hasCode(err, "InvalidToken"):
		return mistake(
			"the session token of the storage has expired or belongs to other keys: renew SOCLE_S3_SESSION_TOKEN",
		)
	case hasCode(err, "NoSuchBucket"), status == http.StatusNotFound:
		return mistake("bucket %s does not exist at %s: create it or correct SOCLE_STORAGE_URL", *b.name, b.address)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return mistake("the keys lack permission to put and delete objects in bucket %s: grant it", *b.name)
	}

	return fmt.Errorf("%s responded with status %d: %w", b.address, status, err)
}
