package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image/color"
	"io"
)

// A color profile defines what the pixel values mean. Without it, photos with a wide gamut look
// pale. So the output keeps it if the pixels still match it.

const (
	profileName     = "ICC_PROFILE\x00"
	maxProfileBytes = 512 << 10 // bytes
	maxSegmentBytes = 65533     // bytes in a JPEG segment, without the length field
)

// keepsProfile reports whether there is a profile that applies to the output, which is RGB.
func (h head) keepsProfile() bool {
	const space, signature = 16, 36 // offsets in the profile
	return len(h.profile) >= 128 && len(h.profile) <= maxProfileBytes && string(h.profile[space:space+4]) == "RGB " &&
		string(h.profile[signature:signature+4]) == "acsp" && h.model != color.CMYKModel &&
		h.model != color.GrayModel && h.model != color.Gray16Model
}

// inflateProfile returns the profile in a PNG chunk, nil if it is invalid.
func inflateProfile(chunk []byte) []byte {
	_, data, ok := bytes.Cut(chunk, []byte{0})
	if !ok || len(data) < 2 || data[0] != 0 {
		return nil
	}

	r, err := zlib.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil
	}

	profile, err := io.ReadAll(io.LimitReader(r, maxProfileBytes+1))
	if err != nil {
		return nil
	}

	return profile
}

// withProfile inserts a profile into a picture's bytes.
func withProfile(p Picture, profile []byte) []byte {
	if p.Format == PNG {
		const header = 8 + 4 + 4 + 13 + 4 // signature and first chunk
		return bytes.Join([][]byte{p.Bytes[:header], profileChunk(profile), p.Bytes[header:]}, nil)
	}

	parts := [][]byte{p.Bytes[:2]}
	const partSize = maxSegmentBytes - len(profileName) - 2
	count := (len(profile) + partSize - 1) / partSize
	for i := range count {
		part := profile[i*partSize : min(len(profile), (i+1)*partSize)]
		segment := []byte{0xff, 0xe2, 0, 0}
		binary.BigEndian.PutUint16(segment[2:], uint16(2+len(profileName)+2+len(part)))
		segment = append(segment, profileName...)
		parts = append(parts, append(segment, byte(i+1), byte(count)), part)
	}

	return bytes.Join(append(parts, p.Bytes[2:]), nil)
}

// profileChunk returns a profile's PNG chunk.
func profileChunk(profile []byte) []byte {
	var chunk bytes.Buffer
	chunk.WriteString("\x00\x00\x00\x00iCCPicc\x00\x00")
	w := zlib.NewWriter(&chunk)
	_, _ = w.Write(profile) // in memory, without errors
	_ = w.Close()

	b := chunk.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-8))

	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}
