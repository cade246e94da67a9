package enduser

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/token"
)

// TestQRCode checks the picture of the longest text, and the finder patterns of a short one.
func TestQRCode(t *testing.T) {
	t.Parallel()

	longest := token.TOTPURL(token.NewTOTPSecret(), strings.Repeat("ü", maxFriendlyName/2),
		strings.Repeat("ü", address.Max/2))
	for _, text := range []string{"otpauth://totp/a:b", longest} {
		svg, err := qrCode(text)
		if err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}

		var picture struct {
			Size  string `xml:"viewBox,attr"`
			Paths []struct {
				Modules string `xml:"d,attr"`
			} `xml:"path"`
		}
		if err := xml.Unmarshal([]byte(svg), &picture); err != nil || len(picture.Paths) != 2 {
			t.Fatalf("%d bytes: %v: %.300s", len(text), err, svg)
		}
		if strings.ContainsAny(svg, "#%") {
			t.Errorf("%d bytes: the picture does not fit a data URL: %.300s", len(text), svg)
		}
		if !strings.HasPrefix(picture.Paths[1].Modules, "M4 4h7v1h-7z") {
			t.Errorf("%d bytes: no finder pattern in the corner: %.300s", len(text), picture.Paths[1].Modules)
		}
	}
}
