// diffusion_chain(steps, noise, denoiser): a network that undoes noise (Ho, Jain, Abbeel 2020). A
// row is mixed with noise at a step t drawn from 1 … steps, xₜ = √ᾱ·x + √(1 − ᾱ)·ε, and the
// denoiser gives x back from xₜ and t: it takes the elements of the sample and t/steps side by
// side. With τ = t/steps, ᾱ is
//   linear   exp(−0.1τ − 9.95τ²)                       (β from 0.1 to 20: Song et al. 2021)
//   cosine   cos²(½π(τ + 0.008)/1.008)                 (Nichol, Dhariwal 2021)
#include "layers/l2/infer_methods.h"

namespace l3c::l2 {

InferEntry DiffusionMethod() {
  InferEntry chain;
  chain.form = {"diffusion_chain",
                {Arg::Integer("steps", 1, 100000), Arg::Word("noise", {"linear", "cosine"})},
                "a network that takes noise off its input, at every strength of noise"};
  chain.parts = {{"denoiser", false}};
  chain.lower = [](InferLowering& to, InferForm& call, uint32_t input) {
    const Form& form = call.written[0];
    const uint32_t noised =
        to.Join("noised", {{"steps", form.args[0]}, {"noise", form.args[1]}}, {input}, call.span);
    return to.Lower(call.items[0], noised);
  };
  return chain;
}

}  // namespace l3c::l2
