package pg

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParameters reads the parameters of connection strings that pgx accepts.
func TestParameters(t *testing.T) {
	t.Parallel()

	want := map[string]string{"sslmode": "verify-full", "sslrootcert": "/a b/c'd", "x": ""}
	for _, address := range []string{
		`postgres://u:p?sslmode=disable@a:1,b:2/d?sslmode=verify-full&sslrootcert=/a%20b/c'd&x=`,
		`postgresql://a,[::1]:2?sslmode=verify-full&sslrootcert=%2Fa%20b%2Fc%27d&x`,
		`sslmode=disable sslmode = verify-full  sslrootcert='/a b/c\'d' x=''`,
		`x='' sslrootcert=/a\ b/c'd sslmode=verify-full`,
	} {
		if diff := cmp.Diff(want, parameters(address)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}

	for _, address := range []string{"", "postgres://", "postgres://a/b", "x", "a='", `a=\`} {
		parameters(address)
	}
}

// TestHostConfigs makes an address of several hosts one of each, with its ways to encrypt.
func TestHostConfigs(t *testing.T) {
	t.Parallel()

	for address, want := range map[string][]string{
		"postgres://u@a:1,b:2/d?target_session_attrs=read-write&sslmode=prefer": {"a:1 tls, a:1 plain", "b:2 tls, b:2 plain"},
		"postgres://u@a,b,a/d?sslmode=disable":                                  {"a:5432 plain, a:5432 plain", "b:5432 plain"},
		"postgres:///d?host=/run/postgresql":                                    {"/run/postgresql:5432 plain"},
	} {
		c, err := PoolConfig(address, 1)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, one := range HostConfigs(c) {
			config := one.ConnConfig
			way := func(host string, port uint16, isEncrypted bool) string {
				return fmt.Sprintf("%s:%d %s", host, port, map[bool]string{true: "tls", false: "plain"}[isEncrypted])
			}

			ways := []string{way(config.Host, config.Port, config.TLSConfig != nil)}
			for _, f := range config.Fallbacks {
				ways = append(ways, way(f.Host, f.Port, f.TLSConfig != nil))
			}
			got = append(got, strings.Join(ways, ", "))

			if config.ValidateConnect != nil {
				t.Errorf("%s: wants a role of the host", address)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// TestProgramAddress tests which parts of an address a program gets.
func TestProgramAddress(t *testing.T) {
	t.Parallel()

	for given, want := range map[string]string{
		"postgres://u:p@a/d": "postgresql:///?connect_timeout=5&dbname=d&host=a&options=-c%20x%3D1&port=5432" +
			"&target_session_attrs=primary&user=u",
		"postgres://u@a:1,b:2/d?target_session_attrs=read-write&connect_timeout=7&sslmode=prefer&keepalives_idle=9" +
			"&application_name=y" +
			"&require_auth=scram-sha-256&options=-c%20y%3D2": "postgresql:///?connect_timeout=7&dbname=d" +
			"&host=a%2Cb&keepalives_idle=9&options=-c%20y%3D2%20-c%20x%3D1&port=1%2C2&require_auth=scram-sha-256" +
			"&sslmode=prefer&target_session_attrs=primary&user=u",
		"host=/a,b port=3 user=u dbname='d e' pool_max_conns=3": "postgresql:///?connect_timeout=5&dbname=d%20e" +
			"&host=%2Fa%2Cb&options=-c%20x%3D1&port=3%2C3&target_session_attrs=primary&user=u",
	} {
		c, err := PrimaryPoolConfig(given, 1)
		if err != nil {
			t.Fatal(err)
		}

		if got := ProgramAddress(c.ConnConfig, given, "-c x=1"); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
		if c.ConnConfig.RuntimeParams["keepalives_idle"] != "" {
			t.Errorf("%s: the session gets a parameter of libpq", given)
		}
	}
}

// TestStandbyAddress tests addresses that ask for a standby, which Socle can't work on.
func TestStandbyAddress(t *testing.T) {
	t.Parallel()

	for _, wanted := range []string{"standby", "read-only"} {
		_, err := PrimaryPoolConfig("postgres://a,b/socle?target_session_attrs="+wanted, 1)
		if err == nil || !strings.Contains(err.Error(), "target_session_attrs="+wanted) {
			t.Errorf("%s: got %v", wanted, err)
		}
	}
}
