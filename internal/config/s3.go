package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// S3 is the configuration for storage in an S3 service.
type S3 struct {
	Bucket    string
	Prefix    string        // key prefix, without slashes around it; may be ""
	Endpoint  string        // service URL; "": Amazon's
	Region    string        // never ""
	PathStyle bool          // the bucket is in the path, not in the host name
	Timeout   time.Duration // for one request including retries; more for large bodies

	// Both keys or none. Without keys, the AWS SDK's default credentials chain provides temporary
	// ones.
	AccessKey    Secret
	SecretKey    Secret
	SessionToken Secret // token that comes with temporary keys; may be ""
}

const (
	defaultRegion  = "us-east-1"
	defaultTimeout = 30 * time.Second
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	keyPrefix  = regexp.MustCompile(`^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)
)

// S3 returns the S3 storage configuration. It reports false if StorageURL is not an S3 URL.
func (c Config) S3() (S3, bool) {
	if !strings.HasPrefix(c.StorageURL, "s3:") {
		return S3{}, false
	}

	s, err := parseS3(c.StorageURL)
	s.AccessKey, s.SecretKey, s.SessionToken = c.S3AccessKey, c.S3SecretKey, c.S3SessionToken

	return s, err == nil
}

func parseS3(text string) (S3, error) {
	malformed := errors.New("is not of the form s3://bucket/prefix?region=…&endpoint=https://…, " +
		"with the further options path_style and timeout")

	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		!bucketName.MatchString(u.Host) {
		return S3{}, malformed
	}

	path := strings.TrimSuffix(u.Path, "/")

	options, err := url.ParseQuery(u.RawQuery)
	if err != nil || !keyPrefix.MatchString(path) {
		return S3{}, malformed
	}

	endpoint := options.Get("endpoint")
	s := S3{Bucket: u.Host, Prefix: strings.TrimPrefix(path, "/"),
		Endpoint: endpoint, Region: cmp.Or(options.Get("region"), defaultRegion),
		PathStyle: endpoint != "", Timeout: defaultTimeout}

	if endpoint != "" {
		at, err := url.Parse(endpoint)
		if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Hostname() == "" || at.User != nil ||
			strings.Trim(at.Path, "/") != "" || strings.ContainsAny(endpoint, "?#") {
			return S3{}, errors.New("has an endpoint that is not of the form https://host or http://host:port")
		}
	}

	if !regionName.MatchString(s.Region) {
		return S3{}, errors.New("has an invalid region")
	}

	for name, values := range options {
		if len(values) != 1 {
			return S3{}, fmt.Errorf("has the option %s more than once", name)
		}

		switch name {
		case "endpoint", "region":
		case "path_style":
			s.PathStyle, err = strconv.ParseBool(values[0])
		case "timeout":
			if s.Timeout, err = time.ParseDuration(values[0]); err == nil &&
				(s.Timeout < time.Millisecond || s.Timeout > 10*time.Minute) {
				err = errors.New("out of range")
			}
		default:
			return S3{}, fmt.Errorf("has the unknown option %s; known are region, endpoint, path_style and timeout",
				name)
		}

		if err != nil {
			return S3{}, fmt.Errorf("has an invalid value for the option %s", name)
		}
	}

	return s, nil
}
