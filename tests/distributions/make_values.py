#!/usr/bin/env python3
"""Writes tests/distributions/torch_values.txt: values of torch.distributions in float64, at random and extreme parameters.

    python3 tests/distributions/make_values.py      needs PyTorch (made with 2.x on the CPU)

    family NAME BATCH PARAMETERS       then one line for each parameter
    FUNCTION [arguments] = results     one line for each function; grad gives d log_prob / d value and each parameter, grad_parameters the latter
    pair P Q BATCH                     the parameters of P, the parameters of Q, then the divergence

Numbers of a line are those of all batch elements in row-major order. PyTorch's mode of Weibull distributions with a concentration below 1 is NaN
and is written as 0, where the density is infinite. Its mode of Kumaraswamy distributions is NaN for all parameters and is left out.
"""
import math
import pathlib

import torch
import torch.distributions as D

N = 12
torch.set_default_dtype(torch.float64)
torch.manual_seed(20)
OUT = []


def number(v):
    return "nan" if math.isnan(v) else ("inf" if v == math.inf else "-inf" if v == -math.inf else format(v, ".17g"))


def line(*tensors):
    OUT.append(" ".join(each if isinstance(each, str) else " ".join(number(v) for v in each.detach().double().reshape(-1).tolist())
                        for each in tensors))


def real(low=-3, high=3):
    x = torch.empty(N).uniform_(low, high)
    x[0], x[1], x[2] = 0, 50, -50
    return x


def positive(low=1e-2, high=1e2):
    x = torch.exp(torch.empty(N).uniform_(math.log(low), math.log(high)))
    x[0], x[1] = 1, 2
    return x


def unit():
    x = torch.empty(N).uniform_(0.02, 0.98)
    x[0], x[1], x[2] = 0.5, 1e-5, 1 - 1e-5
    return x


def rows(make, k):
    return torch.stack([make() for _ in range(k)], -1)


def extreme(low, high):
    return lambda: positive(low, high)


def softmaxed(k):
    return torch.softmax(torch.randn(N, k) * 2, -1)


def matrices(k):
    a = torch.randn(N, k, k).tril(-1)
    return a + torch.diag_embed(torch.exp(torch.randn(N, k)))


def even_matrices(k):
    return torch.randn(N, k, k).tril(-1) * 0.3 + torch.diag_embed(torch.exp(torch.randn(N, k) * 0.3))


EXTREME = extreme(1e-2, 1e5)
COUNT = lambda: torch.floor(positive(1, 200))
FAMILIES = {
    "Normal": (lambda a, b: D.Normal(a, b), [real, positive]),
    "LogNormal": (lambda a, b: D.LogNormal(a, b), [lambda: real(-3, 3).clamp(-5, 5), lambda: positive(0.05, 3)]),
    "HalfNormal": (lambda a: D.HalfNormal(a), [positive]),
    "Cauchy": (lambda a, b: D.Cauchy(a, b), [real, positive]),
    "HalfCauchy": (lambda a: D.HalfCauchy(a), [positive]),
    "Laplace": (lambda a, b: D.Laplace(a, b), [real, positive]),
    "Gumbel": (lambda a, b: D.Gumbel(a, b), [real, positive]),
    "Uniform": (lambda a, b: D.Uniform(a, a + b), [real, positive]),
    "Exponential": (lambda a: D.Exponential(a), [positive]),
    "Gamma": (lambda a, b: D.Gamma(a, b), [EXTREME, positive]),
    "Chi2": (lambda a: D.Chi2(a), [EXTREME]),
    "InverseGamma": (lambda a, b: D.InverseGamma(a, b), [extreme(0.5, 1e4), positive]),
    "Beta": (lambda a, b: D.Beta(a, b), [extreme(5e-2, 1e4), extreme(5e-2, 1e4)]),
    "StudentT": (lambda a, b, c: D.StudentT(a, b, c), [EXTREME, real, positive]),
    "Weibull": (lambda a, b: D.Weibull(a, b), [positive, lambda: positive(0.3, 20)]),
    "Pareto": (lambda a, b: D.Pareto(a, b), [positive, lambda: positive(0.3, 1e2)]),
    "VonMises": (lambda a, b: D.VonMises(a, b), [lambda: real().clamp(-3, 3), positive]),
    "ContinuousBernoulli": (lambda a: D.ContinuousBernoulli(probs=a), [unit]),
    "Bernoulli": (lambda a: D.Bernoulli(probs=a), [unit]),
    "BernoulliLogits": (lambda a: D.Bernoulli(logits=a), [real]),
    "Binomial": (lambda n, a: D.Binomial(n, probs=a), [COUNT, unit]),
    "Geometric": (lambda a: D.Geometric(probs=a), [unit]),
    "Poisson": (lambda a: D.Poisson(a), [lambda: positive(1e-2, 1e4)]),
    "NegativeBinomial": (lambda n, a: D.NegativeBinomial(n, probs=a), [positive, lambda: unit().clamp(1e-4, 1 - 1e-4)]),
    "RelaxedBernoulli": (lambda t, a: D.RelaxedBernoulli(t, probs=a), [lambda: positive(0.3, 3), unit]),
    "Categorical": (lambda a: D.Categorical(probs=a), [lambda: softmaxed(5)]),
    "CategoricalLogits": (lambda a: D.Categorical(logits=a), [lambda: torch.randn(N, 5) * 10]),
    "OneHotCategorical": (lambda a: D.OneHotCategorical(logits=a), [lambda: torch.randn(N, 4) * 5]),
    "Multinomial": (lambda a: D.Multinomial(7, logits=a), [lambda: torch.randn(N, 3)]),
    "RelaxedOneHotCategorical": (lambda t, a: D.RelaxedOneHotCategorical(t, logits=a), None),
    "Dirichlet": (lambda a: D.Dirichlet(a), [lambda: rows(extreme(0.3, 1e3), 4)]),
    "MultivariateNormal": (lambda a, b: D.MultivariateNormal(a, scale_tril=b), [lambda: torch.randn(N, 3), lambda: matrices(3)]),
    "LowRankMultivariateNormal": (lambda a, b, c: D.LowRankMultivariateNormal(a, b, c),
                                  [lambda: torch.randn(N, 4), lambda: torch.randn(N, 4, 2), lambda: rows(lambda: positive(0.1, 10), 4)]),
}

# Made after the pairs, so that the numbers of the others stay as they are.
LATER = {
    "FisherSnedecor": (lambda a, b: D.FisherSnedecor(a, b), [extreme(0.5, 1e3), extreme(0.5, 1e3)]),
    "Kumaraswamy": (lambda a, b: D.Kumaraswamy(a, b), [lambda: positive(0.3, 30), lambda: positive(0.3, 30)]),
    "GeneralizedPareto": (lambda a, b, c: D.GeneralizedPareto(a, b, c), [real, positive, lambda: torch.linspace(-0.9, 0.45, N)]),
    "Wishart": (lambda a, b: D.Wishart(a, scale_tril=b.tril()), [lambda: positive(0.1, 50) + 5, lambda: even_matrices(3)]),
    "LKJCholesky": (lambda a: D.LKJCholesky(4, a), [lambda: positive(0.2, 50)]),
}


def value_of(name, d):
    if name == "VonMises":
        return torch.empty(N).uniform_(-3, 3)
    x = d.sample().double()
    if name in ("ContinuousBernoulli", "Beta", "RelaxedBernoulli", "Kumaraswamy"):
        x = x.clamp(1e-6, 1 - 1e-6)
    if name == "Dirichlet" or name == "RelaxedOneHotCategorical":
        x = x.clamp_min(1e-6)
        x = x / x.sum(-1, keepdim=True)
    return x


def attempt(name, f):
    try:
        result = f()
    except NotImplementedError:
        return
    line(name, "=", result)


def family(name):
    make, makers = FAMILIES[name]
    with torch.no_grad():
        parameters = [m() for m in makers] if makers else [torch.tensor(0.7), torch.randn(N, 4) * 2]
    parameters = [p.clone().requires_grad_(True) for p in parameters]
    d = make(*parameters)
    OUT.append(f"family {name} {N} {len(parameters)}")
    for p in parameters:
        line(p)
    x = value_of(name, d).requires_grad_(True)
    density = d.log_prob(x)
    line("log_prob", x, "=", density)
    slopes = torch.autograd.grad(density.sum(), [x, *parameters], allow_unused=True, retain_graph=True)
    slopes = [torch.zeros_like(p) if s is None else s for s, p in zip(slopes, [x, *parameters])]
    discrete = getattr(d.support, "is_discrete", False)
    line("grad_parameters", x, "=", *slopes[1:]) if discrete else line("grad", x, "=", *slopes)
    if len(d.event_shape) == 0 and name not in ("VonMises", "Geometric"):
        try:
            line("cdf", x, "=", d.cdf(x))
            p = torch.empty(N).uniform_(0.01, 0.99)
            line("icdf", p, "=", d.icdf(p))
        except NotImplementedError:
            pass
    try:
        entropy = d.entropy()
        line("entropy", "=", entropy)
        slopes = torch.autograd.grad(entropy.sum(), parameters, allow_unused=True, retain_graph=True)
        line("grad_entropy", "=", *[torch.zeros_like(p) if s is None else s for s, p in zip(slopes, parameters)])
    except NotImplementedError:
        pass
    for function in ("mean", "variance") if name == "Kumaraswamy" else ("mean", "variance", "mode"):
        attempt(function, lambda f=function: torch.nan_to_num(d.mode) if name == "Weibull" and f == "mode" else getattr(d, f))


PAIRS = [(p, p) for p in ("Normal", "LogNormal", "HalfNormal", "Cauchy", "Laplace", "Gumbel", "Exponential", "Gamma", "Beta", "Pareto", "Bernoulli",
                          "BernoulliLogits", "Geometric", "Poisson", "ContinuousBernoulli", "Categorical", "OneHotCategorical", "Dirichlet",
                          "MultivariateNormal", "LowRankMultivariateNormal", "Uniform")]
UNITS = ("Beta", "ContinuousBernoulli")
PAIRS += [(p, q) for p in UNITS for q in ("Exponential", "Normal", "Pareto")] + [("Beta", "ContinuousBernoulli"), ("Beta", "Gamma")]
PAIRS += [(p, q) for p in ("Exponential", "Gamma") for q in (*UNITS, "Pareto", "Uniform", "Gumbel", "Normal")]
PAIRS += [("Exponential", "Gamma"), ("Gamma", "Exponential")]
PAIRS += [(p, q) for p in ("Gumbel", "Laplace", "Normal") for q in (*UNITS, "Exponential", "Gamma", "Pareto", "Uniform", "Normal") if p != q]
PAIRS += [("Normal", "Gumbel"), ("Normal", "Laplace"), ("Bernoulli", "Poisson"), ("Poisson", "Bernoulli"), ("Poisson", "Binomial")]
PAIRS += [("Pareto", q) for q in (*UNITS, "Uniform", "Exponential", "Gamma", "Normal")]
PAIRS += [("Uniform", q) for q in (*UNITS, "Exponential", "Gamma", "Gumbel", "Normal", "Pareto")]
PAIRS += [("MultivariateNormal", "LowRankMultivariateNormal"), ("LowRankMultivariateNormal", "MultivariateNormal")]
PAIRS += [("Beta", "Uniform"), ("ContinuousBernoulli", "Uniform")]


def pair(p, q):
    def arguments(name, other):
        makers = FAMILIES[name][1]
        values = [m() for m in makers]
        if name == "Uniform" and other in (*UNITS, "Exponential", "Gamma", "Pareto"):
            values = [torch.rand(N) * 0.5 + 1e-3, torch.rand(N) * 0.5 + 1e-3]  # inside of the unit interval
        if "Gumbel" in (p, q) and p != q:
            values = [torch.rand(N) + 0.5 for _ in makers]
        if name == "LowRankMultivariateNormal" and other == "MultivariateNormal":
            values = [v[:, :3] for v in values]
        if name == "Pareto" and other == "Uniform" or name == "Pareto" and other in UNITS:
            values = [values[0] * 1e-3, values[1]]
        return values
    a, b = arguments(p, q), arguments(q, p)
    if (p, q) == ("Uniform", "Uniform"):
        b = [a[0] - torch.rand(N), a[1] + torch.arange(N) * 0.3]
    if (p, q) == ("Pareto", "Pareto"):
        b[0] = a[0] * torch.where(torch.arange(N) % 2 == 0, 0.5, 2.0)
    if q == "Uniform" and p in UNITS:
        b = [-torch.rand(N), torch.rand(N) * 3]
    try:
        value = D.kl_divergence(FAMILIES[p][0](*a), FAMILIES[q][0](*b))
    except NotImplementedError as error:
        print("no", p, q, error)
        return
    OUT.append(f"pair {p} {q} {N} {len(a)} {len(b)}")
    for each in (*a, *b):
        line(each)
    line("kl", "=", value)


for name in FAMILIES:
    family(name)
for p, q in PAIRS:
    pair(p, q)
FAMILIES |= LATER
for name in LATER:
    family(name)
path = pathlib.Path(__file__).with_name("torch_values.txt")
path.write_text("\n".join(OUT) + "\n", encoding="utf-8")
print(path, path.stat().st_size)
