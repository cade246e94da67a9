package pg

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// libpqKeywords are connection string keywords that only tune libpq. PostgreSQL would refuse them
// as session parameters.
var libpqKeywords = []string{"fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "keepalives",
	"keepalives_count", "keepalives_idle", "keepalives_interval", "sslcompression", "tcp_user_timeout"}

// programKeywords are the keywords, beside those that begin with ssl, that pgx drops or changes in
// its configuration.
var programKeywords = append([]string{"channel_binding", "krbsrvname", "require_auth"}, libpqKeywords...)

// PrimaryPoolConfig is [PoolConfig] for connections that must reach the primary, also among several
// hosts. It asks whether the server is in recovery: whether a session is read-only, as
// target_session_attrs=read-write asks, also depends on its login.
func PrimaryPoolConfig(address string, max int32) (*pgxpool.Config, error) {
	c, err := PoolConfig(address, max)
	if err != nil {
		return nil, err
	}

	attrs := cmp.Or(parameters(address)["target_session_attrs"], os.Getenv("PGTARGETSESSIONATTRS"))
	switch attrs {
	case "standby", "read-only":
		return nil, fmt.Errorf("target_session_attrs=%s in the database address: Socle needs the primary; "+
			"use target_session_attrs=primary", attrs)
	}

	if c.ConnConfig.ValidateConnect != nil || len(hosts(c.ConnConfig)) > 1 {
		c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}

	return c, nil
}

// ProgramAddress returns the connection URI for a program built on libpq, without the password. It
// leads to the primary among c's hosts. source is the address from which c was parsed; options are
// added to the session's.
func ProgramAddress(c *pgx.ConnConfig, source, options string) string {
	var names, ports []string
	for _, h := range hosts(c) {
		names, ports = append(names, h.name), append(ports, strconv.Itoa(int(h.port)))
	}

	q := url.Values{
		"host": {strings.Join(names, ",")}, "port": {strings.Join(ports, ",")}, "user": {c.User},
		"dbname": {c.Database}, "target_session_attrs": {"primary"},
		"connect_timeout": {strconv.Itoa(int(math.Ceil(c.ConnectTimeout.Seconds())))},
		"options":         {strings.TrimSpace(c.RuntimeParams["options"] + " " + options)},
	}

	for name, value := range parameters(source) {
		if strings.HasPrefix(name, "ssl") || slices.Contains(programKeywords, name) {
			q.Set(name, value)
		}
	}

	// libpq does not decode a plus as a space.
	return "postgresql:///?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

// HostConfigs returns a configuration for each host of c, with its ways to encrypt, and for
// whichever role the host has.
func HostConfigs(c *pgxpool.Config) []*pgxpool.Config {
	var all []*pgxpool.Config
	ways := append([]*pgconn.FallbackConfig{{Host: c.ConnConfig.Host, Port: c.ConnConfig.Port,
		TLSConfig: c.ConnConfig.TLSConfig}}, c.ConnConfig.Fallbacks...)
	for _, h := range hosts(c.ConnConfig) {
		var own []*pgconn.FallbackConfig
		for _, way := range ways {
			if way.Host == h.name && way.Port == h.port {
				own = append(own, way)
			}
		}

		one := c.Copy()
		one.ConnConfig.Host, one.ConnConfig.Port, one.ConnConfig.TLSConfig = h.name, h.port, own[0].TLSConfig
		one.ConnConfig.Fallbacks, one.ConnConfig.ValidateConnect = own[1:], nil
		all = append(all, one)
	}

	return all
}

// host is a server in an address.
type host struct {
	name string // or a socket folder
	port uint16
}

// hosts returns the hosts that c tries, in order. pgx has a host once for each way to encrypt.
func hosts(c *pgx.ConnConfig) []host {
	all := []host{{c.Host, c.Port}}
	for _, f := range c.Fallbacks {
		if h := (host{f.Host, f.Port}); !slices.Contains(all, h) {
			all = append(all, h)
		}
	}

	return all
}

// parameters returns a valid connection string's parameters: from a URL's query, or from keywords
// with values. net/url refuses URLs with several ports.
func parameters(address string) map[string]string {
	all := map[string]string{}
	rest, isURL := strings.CutPrefix(address, "postgresql://")
	if !isURL {
		rest, isURL = strings.CutPrefix(address, "postgres://")
	}
	if !isURL {
		keywordValues(address, all)
		return all
	}

	// A password may contain a question mark.
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}

	_, query, _ := strings.Cut(rest, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.PathUnescape(name)
		value, valueErr := url.PathUnescape(value)
		if nameErr == nil && valueErr == nil {
			all[name] = value
		}
	}

	return all
}

// keywordValues adds the parameters from a keyword/value connection string.
func keywordValues(s string, to map[string]string) {
	const space = " \t\n\r\v\f"
	for {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return
		}

		rest = strings.TrimLeft(rest, space)
		rest, isQuoted := strings.CutPrefix(rest, "'")
		value, i := []byte{}, 0
		for ; i < len(rest); i++ {
			if (isQuoted && rest[i] == '\'') || (!isQuoted && strings.IndexByte(space, rest[i]) >= 0) {
				i++
				break
			}
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			}
			value = append(value, rest[i])
		}

		to[strings.Trim(name, space)], s = string(value), rest[i:]
	}
}
