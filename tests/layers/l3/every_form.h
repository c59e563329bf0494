// A program that holds every form of L3 once.
#pragma once

namespace l3c::l3 {

inline constexpr char kEveryForm[] = R"(# l3c l3 v1

data text {
    tokens : sequence(scalar(u8), 64)
    next   : tensor(u8, [64])
}

data people {
    row   : table(age: scalar(f32), city: dist(5), photo: tensor(u8, [8, 8]))
    #[l1::on(ssd_0)]
    photo : tensor(f32, [8, 8])
    other : tensor(f32, [8, 8])
    score : scalar(f32)
}

data world {
    reward : scalar(f32)
    env("gridworld.l1")
}

model language {
    in:  text.tokens
    out: sequence(dist(256), 64)
    properties: [depth(4), width(128), causal, autoregressive, latency_budget(10ms)]
}

model encode {
    in:  people.photo
    out: tensor(f32, [16])
    properties: [equivariant(translation), equivariant(c4), param_budget(1M)]
    #[l2::backward(evolution(pop: 50))]
}

model decode {
    in:  encode.out
    out: tensor(f32, [8, 8])
    properties: []
}

model judge {
    in:  [people.photo, people.score]
    out: scalar(f32)
    properties: []
}

loss fit {
    next:   divergence(language.out, text.next),                              weight: 1.0
    small:  norm(language.params, p=2),                                       weight: 1e-4
    calm:   norm(language.activations, p=1.5),                                weight: 0.5
    bound:  constraint(mean(encode.out) <= 1.0 && max(encode.out) < 10),      weight: 10.0
    same:   reconstruction(people.photo, decode.out),                         weight: 1.0
    apart:  contrastive(encode.out, encode(people.other), encode(decode.out)), weight: 0.1
    #[l2::loss(mse)]
    hinge:  custom(hinge, reads: [judge.out], value: mean(max(0, 1 - judge.out))), weight: 1.0
    filed:  custom("focal.expr", reads: [judge.out, people.score]),           weight: 1.0
    combine: weighted_sum
}

loss play {
    fool: divergence(judge(decode.out, people.score), people.score), weight: 1.0
    combine: weighted_sum
}

#[l2::phases(main)]
goal: alternate([minimize(fit, models: [language, encode, decode, judge]), maximize(play.fool, models: [decode])])
)";

}  // namespace l3c::l3
