package sandbox

import (
	"context"
	"net/netip"
	"testing"
)

func TestANameCannotResolveToAnAddressOfThisMachine(t *testing.T) {
	own := func(a netip.Addr) bool {
		return a == netip.MustParseAddr("192.0.2.10") || netip.MustParsePrefix("10.9.0.0/16").Contains(a)
	}
	answers := []netip.Addr{}
	for _, a := range []string{"127.0.0.1", "::1", "192.0.2.10", "10.9.3.3", "169.254.169.254", "fd00:ec2::254", "198.51.100.7"} {
		answers = append(answers, netip.MustParseAddr(a))
	}
	everything := func(context.Context, string) ([]netip.Addr, error) { return answers, nil }
	network := func(values ...string) Network {
		n, err := ParseNetwork(values)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		network Network
		to      string
		want    bool
	}{
		{network("api.example:443"), "198.51.100.7:443", true},
		{network("api.example:443"), "198.51.100.7:80", false},
		{network("api.example:443"), "127.0.0.1:443", false},
		{network("api.example:443"), "[::ffff:127.0.0.1]:443", false},
		{network("api.example:443"), "[::1]:443", false},
		{network("api.example:443"), "192.0.2.10:443", false},
		{network("api.example:443"), "10.9.3.3:443", false},
		{network("api.example:443"), "169.254.169.254:443", false},
		{network("api.example:443"), "[fd00:ec2::254]:443", false},
		{network("localhost:443"), "127.0.0.1:443", true},
		{network("127.0.0.1:443"), "127.0.0.1:443", true},
		{network("10.9.0.0/16:443"), "10.9.3.3:443", true},
		{network(), "198.51.100.7:25", true},
		{network(), "10.9.3.3:443", false},
		{network(), "[fd00:ec2::254]:80", false},
		{network(), "100.100.100.200:80", false},
		{network(), "[fd00:ec2::23]:80", false},
		{network(), "[fd00:c1::a9fe:a9fe]:80", false},
		{network(), "[fd00:42::42]:80", false},
		{network(), "[64:ff9b::169.254.169.254]:80", false},
		{network(), "[64:ff9b:1::a9fe:a9fe]:80", false},
		{network(), "[64:ff9b:1:a9fe:a9:fe00::]:80", false},
		{network(), "[64:ff9b:1:aa:a9:fea9:fe00:0]:80", false},
		{network(), "[64:ff9b:1:aaa9:fe:a9fe::]:80", false},
		{network(), "[64:ff9b:1:aaaa:a9:fea9:fe00:0]:80", false},
		{network(), "[64:ff9b:1:aaaa:bbbb:cccc:c000:20a]:80", false},
		{network(), "[64:ff9b:1:c000:2:a00::]:80", false},
		{network(), "[64:ff9b::127.0.0.1]:80", false},
		{network(), "[64:ff9b::192.0.2.10]:80", false},
		{network(), "[2002:c000:20a::1]:80", false},
		{network(), "[::ffff:0:127.0.0.1]:80", false},
		{network(), "[2002:7f00:1::1]:80", false},
		{network(), "[::127.0.0.1]:80", false},
		{network(), "[2001:0:c633:6407:8000:f227:5601:5601]:80", false},
		{network(), "[2001:0:a9fe:a9fe:8000:f227:39cc:9bf8]:80", false},
		{network(), "[2001:db8::5efe:169.254.169.254]:80", false},
		{network(), "[2001:db8::200:5efe:192.0.2.10]:80", false},
		{network(), "[2001:0:c633:6407:8000:f227:39cc:9bf8]:80", true},
		{network(), "[2001:db8::5efe:198.51.100.7]:80", true},
		{network(), "[64:ff9b:1:c633:64:700::]:80", true},
		{network(), "[64:ff9b:1:aac6:33:6407::]:80", true},
		{network(), "[64:ff9b:1:aaaa:c6:3364:700:0]:80", true},
		{network(), "[64:ff9b:1::198.51.100.7]:80", true},
		{network(), "[64:ff9b::198.51.100.7]:80", true},
		{network(), "[2002:c633:6407::1]:80", true},
		{network(), "[2001:db8::1]:80", true},
		{Network{Also: []string{"registry.example:4873", "[::1]:80"}}, "127.0.0.1:4873", true},
		{Network{Also: []string{"registry.example:4873", "[::1]:80"}}, "[::1]:80", true},
		{Network{Also: []string{"registry.example:4873", "[::1]:80"}}, "127.0.0.1:4874", false},
		{Network{Also: []string{"127.0.0.2:4873"}}, "127.0.0.1:4873", false},
		{Network{Also: []string{"127.0.0.2:4873"}}, "198.51.100.7:25", true},
		{Network{Mode: NetworkNone, Also: []string{"127.0.0.1:80"}}, "127.0.0.1:80", false},
		{network(), "[::ffff:192.0.2.10]:80", false},
		{Network{Only: []string{"198.51.100.7:443"}}, "198.51.100.7:443", true},
		{Network{Only: []string{"api.example:443"}}, "198.51.100.7:443", true},
		{Network{Only: []string{"api.example:443"}}, "198.51.100.7:80", false},
		{Network{Only: []string{"198.51.100.7:443"}}, "198.51.100.8:443", false},
		{Network{Only: []string{"localhost:*"}}, "127.0.0.1:27247", false},
		{Network{Only: []string{"127.0.0.1:27247"}}, "127.0.0.1:27247", false},
		{Network{Only: []string{"127.0.0.0/8:*", "0.0.0.0/0:*", "::/0:*"}}, "127.0.0.1:27247", false},
		{Network{Only: []string{"[::/0]:*", "[::1]:*"}}, "[::1]:27247", false},
		{Network{Only: []string{"192.0.2.10:*", "10.9.0.0/16:*"}}, "10.9.3.3:5432", false},
		{Network{Only: []string{"169.254.169.254:80"}}, "169.254.169.254:80", false},
		{Network{Only: []string{"198.51.100.7:443"}, Also: []string{"localhost:6379"}}, "127.0.0.1:6379", true},
		{Network{Only: []string{"198.51.100.7:443"}, Also: []string{"127.0.0.1:6379"}}, "127.0.0.1:6379", true},
		{Network{Only: []string{"198.51.100.7:443"}, Also: []string{"127.0.0.1:6379"}}, "127.0.0.1:6380", false},
		{network(NetworkNone), "198.51.100.7:443", false},
		{network(NetworkAll), "127.0.0.1:80", true},
	} {
		if got := c.network.permits(t.Context(), netip.MustParseAddrPort(c.to), own, everything); got != c.want {
			t.Errorf("%v to %s: %v", c.network.Values(), c.to, got)
		}
	}
}
