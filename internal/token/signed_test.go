package token

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestLink(t *testing.T) {
	t.Parallel()

	key, id := Derive([]byte(strings.Repeat("k", 32)), "links"), uuid.MustParse("01890000-0000-7000-8000-000000000001")
	link := Link(key, "reset", id)
	if got, ok := ParseLink(key, "reset", link); !ok || got != id || link != Link(key, "reset", id) {
		t.Errorf("ParseLink of %s = %s, %v, want %s", link, got, ok, id)
	}

	other := id
	other[15]++
	forged := LinkPrefix + Link(key, "reset", other)[len(LinkPrefix):len(LinkPrefix)+22] + link[len(LinkPrefix)+22:]
	for name, text := range map[string]string{
		"nothing": "", "no prefix": link[len(LinkPrefix):], "cut": link[:len(link)-1], "longer": link + "A",
		"padded": link + "=", "another id": forged, "another prefix": "socle_secret_" + link[len(LinkPrefix):],
		"line break": link[:20] + "\n" + link[21:], "no base64": link[:20] + "!" + link[21:],
		"another key": Link(Derive(key, "x"), "reset", id), "another purpose": Link(key, "invitation", id),
		"flipped": link[:len(link)-2] + "zz",
	} {
		if got, ok := ParseLink(key, "reset", text); ok {
			t.Errorf("%s: ParseLink(%s) = %s, true, want false", name, text, got)
		}
	}

	if strings.Contains(link, "=") || strings.ContainsAny(link, "+/") {
		t.Errorf("%s does not fit into a URL as it is", link)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()

	key := Derive([]byte(strings.Repeat("k", 32)), "refresh")
	id := uuid.MustParse("01890000-0000-7000-8000-000000000001")
	text := Refresh(key, id, 7)
	if session, generation, ok := ParseRefresh(key, text); !ok || session != id || generation != 7 {
		t.Errorf("ParseRefresh of %s = %s, %d, %v", text, session, generation, ok)
	}
	if text == Refresh(key, id, 8) || id != uuid.MustParse("01890000-0000-7000-8000-000000000001") {
		t.Error("two generations have one token, or the id was written over")
	}

	last := text[:len(text)-1]
	body := len(RefreshPrefix) + 27 // the prefix and the body in base64url, without the MAC
	forged := Refresh(key, id, 8)[:body] + text[body:]

	for name, bad := range map[string]string{
		"cut":                last,
		"another generation": forged,
		"a link":             Link(key, "", id),
		"line break":         last[:30] + "\n" + text[31:],
		"another key":        Refresh(Derive(key, "x"), id, 7),
	} {
		if _, _, ok := ParseRefresh(key, bad); ok {
			t.Errorf("%s: ParseRefresh(%s) = true, want false", name, bad)
		}
	}

	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if other := last + string(c); other != text {
			if _, _, ok := ParseRefresh(key, other); ok {
				t.Errorf("%s has another spelling: %s", text, other)
			}
		}
	}
}
