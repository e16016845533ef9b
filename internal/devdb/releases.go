//go:build unix

package devdb

import (
	"os"
	"runtime"
)

// release is a version of PostgreSQL that can be downloaded: the programs that zonky.io publishes
// on Maven Central for embedding.
type release struct {
	version string
	sums    map[string]string // SHA-256 of the jar, by platform
}

// newest is the major version of a new data directory.
const newest = 18

// releases are by major version. A platform without a sum has no download. To add a version, run
// this for each platform and compare a few sums with those on other machines:
//
//	p=linux-amd64 v=18.3.0; mvn -q dependency:get -Dtransitive=false \
//	  -Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-$p:$v &&
//	sha256sum ~/.m2/repository/io/zonky/test/postgres/embedded-postgres-binaries-$p/$v/*.jar
var releases = map[int]release{
	18: {"18.3.0", map[string]string{
		"linux-amd64":        "1974c3a59c3ae010e9818e81637e425aad94eaac26e4ef533b42e081fe7ca345",
		"linux-arm64v8":      "1fb555a6602c13a113ab1f0cc9224d599948e85e51ac5f001393605505eaf78e",
		"linux-amd64-alpine": "510fd314da39f1eeccef774a92428474168fedf55403342548e2adeaed66b483",
		"darwin-amd64":       "cb68c57232945f5e74db946e6077d70cec56bfed35959b21acc750cc80ca0977",
		"darwin-arm64v8":     "a18ec9ec6a905e04f5a08a8f7870bddadd635feb54dee332a3daf80fada3cb1a",
	}},
	17: {"17.5.0", map[string]string{
		"linux-amd64":        "646f3269075d1a23904127374e3cdbcef96beb32979fedee25d835877400fcbe",
		"linux-arm64v8":      "e02f27ff50ff2d90b6541d54f3f108505aacd84ea53c2890e976a684bfea2752",
		"linux-amd64-alpine": "7122386c7f7a089568f05720ada63448093d4065abbc0a89e6dc660851a53e3c",
		"darwin-amd64":       "fb70f783928e77c3d6ef5ca8ed644f1ac502f740fcfc032a375c8347820f2bdd",
		"darwin-arm64v8":     "e9d3398e10c2ec926395498b03e75ad1a24eeaed82895e756a7e173b202cf6de",
	}},
	16: {"16.9.0", map[string]string{
		"linux-amd64":        "d983cee24678490199e1684d6a93f49f84673696cb6f0db64e880a4cf233017b",
		"linux-arm64v8":      "9d113402f70f4d134250916319ad83e87cba3796bd73a606c28dbabd326b4fa3",
		"linux-amd64-alpine": "2a82d0d9266d46976be463ecf76b89f72e614d867e26b7fe8cf038fe7e05f075",
		"darwin-amd64":       "0be7111599308e8a670ae72e9512a4b902dabe3e2e0cda0539a0447a5bdacb26",
		"darwin-arm64v8":     "53b2672c602e16e4c94fb56b9aa68cc26a0bbb0df851f256f41a2cdbeccc9cb6",
	}},
	15: {"15.13.0", map[string]string{
		"linux-amd64":        "cc0177d8a22b85ed266f6204c0642fd5c24ab583d1ef221d4b60bce29d4fa4ef",
		"linux-amd64-alpine": "73c825eba923c8faa8059a5f9af7d20c9800b7feba901110fdc3487400905a80",
		"darwin-amd64":       "1befcdf1f4ef59aaac5efbff997de798984f7a03ab1fb6b32771fbfb21178dc5",
	}},
}

// platformName returns the name of this machine's platform in downloads.
func platformName() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine"
	}
	return runtime.GOOS + "-" + arch
}
