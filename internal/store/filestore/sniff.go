package filestore

import (
	"bytes"
	"encoding/binary"
	"mime"
	"net/http"
)

// programs are the first bytes of files that a processor or a virtual machine runs.
var programs = [][]byte{
	[]byte("MZ"), []byte("\x7fELF"), []byte("dex\n"), []byte("\x00asm"), []byte("L\x00\x00\x00\x01\x14\x02\x00"),
	{0xfe, 0xed, 0xfa, 0xce}, {0xfe, 0xed, 0xfa, 0xcf}, {0xce, 0xfa, 0xed, 0xfe}, {0xcf, 0xfa, 0xed, 0xfe}, {0xca, 0xfe, 0xba, 0xbe},
}

// sniffType detects a file's type by its beginning. It unpacks nothing.
func sniffType(head []byte) string {
	t, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	if bytes.HasPrefix(bytes.TrimPrefix(head, []byte("\ufeff")), []byte("#!")) {
		return script
	}
	switch t {
	case unknown:
		for _, p := range programs {
			if bytes.HasPrefix(head, p) {
				return program
			}
		}
	case zipArchive:
		return zipKind(head)
	}
	return t
}

// zipKind detects the kind of a zip archive by the names in its beginning.
func zipKind(head []byte) string {
	found := zipArchive
	for n := 0; ; n++ {
		at := bytes.Index(head, []byte("PK\x03\x04"))
		if at < 0 || len(head) < at+30 {
			return found
		}
		header := head[at:]
		name := header[30:min(len(header), 30+int(binary.LittleEndian.Uint16(header[26:])))]
		body := header[30+len(name):]
		head = header[4:]
		switch {
		case n == 0 && string(name) == "mimetype": // OpenDocument: the first entry, uncompressed
			body = body[:min(len(body), int(binary.LittleEndian.Uint32(header[18:])))]
			for _, a := range allowed {
				if string(body) == a.mime {
					return a.mime
				}
			}
		case bytes.HasPrefix(name, []byte("word/")):
			return officeType("docx")
		case bytes.HasPrefix(name, []byte("xl/")):
			return officeType("xlsx")
		case bytes.HasPrefix(name, []byte("ppt/")):
			return officeType("pptx")
		case string(name) == "AndroidManifest.xml":
			return apk
		case string(name) == "META-INF/MANIFEST.MF":
			found = jar // unless it is an Android package
		}
	}
}

func officeType(ext string) string {
	for _, a := range allowed {
		if a.ext == ext {
			return a.mime
		}
	}
	return unknown
}
