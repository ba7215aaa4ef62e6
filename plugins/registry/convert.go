package registry

import (
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// score limits a trust score to the contract's range, 0 to 100.
func score(n int) uint32 { return uint32(min(max(n, 0), 100)) }

func toProto(p Package) *registryv1.Package {
	w := &registryv1.Package{
		Name: p.Name, Version: p.Version, Title: p.Title, Description: p.Description, TrustScore: score(p.TrustScore), Kind: kindToProto(p.Kind),
		Artifact: p.Artifact, Sha256: p.SHA256, Size: p.Size,
		Identifier: p.Identifier, IdentifierVersion: p.IdentifierVersion, RuntimeArgs: p.RuntimeArgs, Args: p.Args,
	}
	if p.Kind == KindRemote {
		w.Remote = &registryv1.Remote{Transport: p.Remote.Transport, Url: p.Remote.URL, Headers: p.Remote.Headers}
	}
	for _, v := range p.Variables {
		w.Variables = append(w.Variables, &registryv1.Variable{
			Name: v.Name, Title: v.Title, Description: v.Description, Default: v.Default, Choices: v.Choices, Required: v.Required, Secret: v.Secret,
		})
	}
	return w
}

func fromProto(w *registryv1.Package) Package {
	p := Package{
		Name: w.GetName(), Version: w.GetVersion(), Title: w.GetTitle(), Description: w.GetDescription(), TrustScore: int(w.GetTrustScore()), Kind: kindFromProto(w.GetKind()),
		Artifact: w.GetArtifact(), SHA256: w.GetSha256(), Size: w.GetSize(),
		Identifier: w.GetIdentifier(), IdentifierVersion: w.GetIdentifierVersion(), RuntimeArgs: w.GetRuntimeArgs(), Args: w.GetArgs(),
		Remote: Remote{Transport: w.GetRemote().GetTransport(), URL: w.GetRemote().GetUrl(), Headers: w.GetRemote().GetHeaders()},
	}
	for _, v := range w.GetVariables() {
		p.Variables = append(p.Variables, Variable{
			Name: v.GetName(), Title: v.GetTitle(), Description: v.GetDescription(), Default: v.GetDefault(), Choices: v.GetChoices(), Required: v.GetRequired(), Secret: v.GetSecret(),
		})
	}
	return p
}

func kindToProto(k Kind) registryv1.Kind {
	switch k {
	case KindMCPB:
		return registryv1.Kind_KIND_MCPB
	case KindNPM:
		return registryv1.Kind_KIND_NPM
	case KindPyPI:
		return registryv1.Kind_KIND_PYPI
	case KindRemote:
		return registryv1.Kind_KIND_REMOTE
	default:
		return registryv1.Kind_KIND_UNSPECIFIED
	}
}

func kindFromProto(k registryv1.Kind) Kind {
	switch k {
	case registryv1.Kind_KIND_MCPB:
		return KindMCPB
	case registryv1.Kind_KIND_NPM:
		return KindNPM
	case registryv1.Kind_KIND_PYPI:
		return KindPyPI
	case registryv1.Kind_KIND_REMOTE:
		return KindRemote
	default:
		return ""
	}
}
