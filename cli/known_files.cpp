// The tables of known datasets and weights.
#include "known_files.h"

namespace tenon::cli {

// MNIST's checksums cover the values after the headers, so files compressed by another gzip are
// accepted.
const std::vector<KnownSet>& known_sets() {
  constexpr std::uint64_t kBatch = 30'730'000, kRecord = 2 + 3 * 32 * 32;
  static const std::string toronto = "https://www.cs.toronto.edu/~kriz";
  static const std::vector<KnownSet> sets = {
      {"mnist",
       "MNIST",
       "12 MB",
       "lenet5",
       {"https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist"},
       {{"train-images-idx3-ubyte.gz",
         "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
         {60000, 28, 28}},
        {"train-labels-idx1-ubyte.gz",
         "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
         {60000}},
        {"t10k-images-idx3-ubyte.gz",
         "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
         {10000, 28, 28}},
        {"t10k-labels-idx1-ubyte.gz",
         "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
         {10000}}},
       {}},
      {"cifar10",
       "CIFAR-10",
       "170 MB",
       "resnet20",
       {toronto},
       {{"cifar-10-binary.tar.gz",
         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
       {{"data_batch_1.bin", kBatch},
        {"data_batch_2.bin", kBatch},
        {"data_batch_3.bin", kBatch},
        {"data_batch_4.bin", kBatch},
        {"data_batch_5.bin", kBatch},
        {"test_batch.bin", kBatch},
        {"batches.meta.txt", 0}}},
      {"cifar100",
       "CIFAR-100",
       "169 MB",
       "resnet20",
       {toronto},
       {{"cifar-100-binary.tar.gz",
         "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
       {{"train.bin", 50'000 * kRecord},
        {"test.bin", 10'000 * kRecord},
        {"fine_label_names.txt", 0}}}};
  return sets;
}

// Hugging Face's URLs name a fixed revision. timm's copies of Inception-ResNet-v2 and of
// torchvision's ResNet-152 are there too, because the whole SHA-256 of the original files is not
// published.
const std::vector<KnownSet>& known_weights() {
  static const std::string torchvision = "https://download.pytorch.org/models",
                           hub = "https://huggingface.co/", timm = hub + "timm/",
                           gpt2 = hub + "openai-community/gpt2", bert = hub + "google-bert/bert-";
  const auto weights = [](const char* sum) { return KnownFile{"model.safetensors", sum}; };
  const auto config = [](const char* sum) { return KnownFile{"config.json", sum}; };
  static const KnownFile vocabulary{
      "vocab.json", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"},
      merges{"merges.txt", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"},
      words{"vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"};
  const auto of_torchvision = [](const char* name, const char* size, const char* file,
                                 const char* sum) {
    return KnownSet{name, name, size, name, {torchvision}, {{file, sum}}, {}};
  };
  static const std::vector<KnownSet> sets = {
      of_torchvision("alexnet", "233 MB", "alexnet-owt-7be5be79.pth",
                     "7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02"),
      of_torchvision("vgg16", "528 MB", "vgg16-397923af.pth",
                     "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0"),
      of_torchvision("vgg16_bn", "528 MB", "vgg16_bn-6c64b313.pth",
                     "6c64b3138f2f4fcb3bcc4cafde11619c4f440eb1631787e93a682fd88305888a"),
      of_torchvision("resnet18", "45 MB", "resnet18-f37072fd.pth",
                     "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"),
      of_torchvision("resnet34", "83 MB", "resnet34-b627a593.pth",
                     "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f"),
      of_torchvision("resnet50", "98 MB", "resnet50-11ad3fa6.pth",
                     "11ad3fa62ca79e40addfd354a8ec4b7c75143b3038b8d2a807fbc68deab379ca"),
      of_torchvision("resnet101", "171 MB", "resnet101-cd907fc2.pth",
                     "cd907fc2a0de2292b2ba2b27d2216bc672d84632d1cf20058d01c0c03b5e020e"),
      {"resnet152",
       "resnet152",
       "230 MB",
       "resnet152",
       {timm + "resnet152.tv2_in1k/resolve/6c03aba8c980980031f286eec039dc10543e01a4"},
       {{"pytorch_model.bin", "5008cdcff7af7608155a37baf1b30560be2f6db0c8a98eec247409065d46a9ac"}},
       {}},
      {"inception_resnet_v2",
       "inception_resnet_v2",
       "224 MB",
       "inception_resnet_v2",
       {timm + "inception_resnet_v2.tf_in1k/resolve/89854797f99e77e1189626b74d7c07013a4308fa"},
       {weights("dbea26b13a5fc8351919fed6a94222c0577ce324b2765fd081a798f837ca9d72")},
       {}},
      {"gpt2",
       "gpt2",
       "548 MB",
       "gpt2",
       {gpt2 + "/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e"},
       {weights("248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"),
        config("0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4"), vocabulary,
        merges},
       {}},
      {"gpt2_medium",
       "gpt2_medium",
       "1.5 GB",
       "gpt2_medium",
       {gpt2 + "-medium/resolve/6dcaa7a952f72f9298047fd5137cd6e4f05f41da"},
       {weights("fc5a354a19255ad494f3d71549390baca1ccf61d1d822b9408971705c687c9cd"),
        config("ef1a44d889ad1a0acc7731c78134f1b87d2d222f110e97dd10fd4117331caf22"), vocabulary,
        merges},
       {}},
      {"gpt2_large",
       "gpt2_large",
       "3.2 GB",
       "gpt2_large",
       {gpt2 + "-large/resolve/32b71b12589c2f8d625668d2335a01cac3249519"},
       {weights("5f47f3e12f91cd33b662ce7e433b6150ad5512b5884a2cee961b50e9c3bbebce"),
        config("7fccdcfd6622055342a734c663ee0b61ff4fd697f42467595df0bf4448c8c170"), vocabulary,
        merges},
       {}},
      {"gpt2_xl",
       "gpt2_xl",
       "6.4 GB",
       "gpt2_xl",
       {gpt2 + "-xl/resolve/15ea56dee5df4983c59b2538573817e1667135e2"},
       {weights("0f8b28eb05a8075f48b61b6f35332978c74fc7763fa9fb4051a1c30511736a6a"),
        config("be48115d52314bc27327e160bf10197760db02ea689d10adb24db4102edf7a8a"), vocabulary,
        merges},
       {}},
      {"bert",
       "bert",
       "440 MB",
       "bert",
       {bert + "base-uncased/resolve/86b5e0934494bd15c9632b12f734a8a67f723594"},
       {weights("68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3"),
        config("7160e1553ad2ca51d8c1cb066be533db31826e12d173824c1bb0cb1a4f187d20"), words},
       {}},
      {"bert_large",
       "bert_large",
       "1.3 GB",
       "bert_large",
       {bert + "large-uncased/resolve/6da4b6a26a1877e173fca3225479512db81a5e5b"},
       {weights("28349a5c57338d0dca591bb95de533897c2399095c69d61e09604b46f444a4c4"),
        config("f9a38c9ffa369f288c3206d0bf352dfed11d7bdee93aa5b2de6d7fdc7bff7871"), words},
       {}}};
  return sets;
}

}  // namespace tenon::cli
