"""Inputs that a forward's signature and configuration do not tell, as data."""

from dataclasses import dataclass
from typing import Any

ROWS = 2
TOKENS = 8
MEL_FRAMES = 64
SAMPLES = 3840


@dataclass(frozen=True)
class Floats:
    """Normal noise of a shape, float32."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class Ids:
    """Uniform integers in [low, high) of a shape, int64. The default range holds no special token of the zoo."""

    shape: tuple[int, ...]
    low: int = 10
    high: int = 60


_SIGLIP2 = {
    "pixel_values": Floats((2, 16, 768)),
    "pixel_attention_mask": [[1] * 16] * 2,
    "spatial_shapes": [[4, 4], [4, 4]],
}
_SERIES = {
    "past_values": Floats((2, 23)),
    "past_time_features": Floats((2, 23, 1)),
    "past_observed_mask": [[1.0] * 23] * 2,
    "future_values": Floats((2, 4)),
    "future_time_features": Floats((2, 4, 1)),
}

# By architecture: parameter -> what to give. Lists become tensors, None leaves the parameter out, other values are given as they are.
INPUTS: dict[str, dict[str, Any]] = {
    "AlignModel": {"pixel_values": Floats((2, 3, 64, 64))},
    "ASTForAudioClassification": {"input_values": Floats((2, 1024, 128))},
    "AudioFlamingo3Encoder": {"input_features_mask": [[1] * 256] * 2},
    "AutoformerModel": _SERIES,
    "Blip2QFormerModel": {"encoder_hidden_states": Floats((2, 6, 32)), "query_embeds": Floats((2, 4, 32))},
    "BltForCausalLM": {"use_cache": False},
    "BridgeTowerModel": {"pixel_values": Floats((2, 3, 64, 64))},
    "BrosModel": {"bbox": Floats((2, 8, 4))},
    "ClapModel": {"input_features": Floats((2, 1, 256, 64)), "is_longer": [[False], [False]]},
    "ColModernVBertForRetrieval": {"pixel_values": None},
    "ColPaliForRetrieval": {"pixel_values": None},
    "DacModel": {"input_values": Floats((2, 1, 2048))},
    "DecisionTransformerModel": {
        "states": Floats((2, 4, 17)),
        "actions": Floats((2, 4, 4)),
        "rewards": Floats((2, 4, 1)),
        "returns_to_go": Floats((2, 4, 1)),
        "timesteps": Ids((2, 4), 0, 20),
        "attention_mask": [[1, 1, 1, 1]] * 2,
    },
    "DiaForConditionalGeneration": {"decoder_input_ids": Ids((2, 8, 9))},
    "FunAsrNanoEncoder": {"input_features": Floats((2, 64, 560))},
    "Gemma3nAudioEncoder": {"audio_mel": Floats((2, 64, 128)), "audio_mel_mask": [[False] * 64] * 2},
    "Gemma4AudioModel": {"input_features": Floats((2, 64, 128))},
    "Gemma4VisionModel": {
        "pixel_values": Floats((1, 9, 768)),
        "pixel_position_ids": [[[x, y] for y in range(3) for x in range(3)]],
    },
    "GlmAsrEncoder": {"input_features": Floats((2, 128, 64))},
    "GraniteSpeech5Encoder": {"input_features": Floats((2, 64, 320))},
    "GraniteSpeech5ForCTC": {"input_features": Floats((2, 64, 320))},
    "HieraForPreTraining": {"noise": Floats((2, 4))},
    "IdeficsForVisionText2Text": {
        "pixel_values": Floats((2, 1, 3, 64, 64)),
        "image_attention_mask": [[[1]] * 8] * 2,
    },
    "InformerModel": _SERIES,
    "Kimi_K25VisionModel": {"pixel_values": Floats((16, 3, 14, 14))},
    "LightGlueForKeypointMatching": {"pixel_values": Floats((1, 2, 3, 64, 64))},
    "LlavaForConditionalGeneration": {"image_sizes": None},
    "LxmertForPreTraining": {"visual_feats": Floats((2, 4, 2048)), "visual_pos": Floats((2, 4, 4))},
    "MimiDecoderModel": {"latents": Floats((2, 32, 8))},
    "MiniCPMOcrVisionModel": {"pixel_values": Floats((1, 3, 16, 512)), "target_sizes": [[4, 4], [4, 4]]},
    "MiniCPMV4_7VisionModel": {"pixel_values": Floats((1, 3, 16, 512)), "target_sizes": [[4, 4], [4, 4]]},
    "MuseGlimmerVisionModel": {"pixel_values": Floats((16, 1176))},
    "MuseSparkAudioModel": {"input_values": Floats((2, 1920))},
    "MuseSparkVisionModel": {"pixel_values": Floats((16, 1176))},
    "MusicgenForCausalLM": {"input_ids": Ids((8, 8))},
    "MusicgenForConditionalGeneration": {"decoder_input_ids": Ids((8, 8))},
    "MusicgenMelodyForCausalLM": {"input_ids": Ids((8, 8))},
    "MusicgenMelodyForConditionalGeneration": {"decoder_input_ids": Ids((8, 8))},
    "Nemotron3_5TranscribeWordTimestampModel": {"inputs_embeds": Floats((2, 8, 32))},
    "NeoMMEForMaskedLM": {"pixel_values": None},
    "OmniASRAudioModel": {"input_values": Floats((2, 1, 3840))},
    "OmniASRForCTC": {"input_values": Floats((2, 1, 3840))},
    "PatchTSMixerForTimeSeriesClassification": {"past_values": Floats((2, 32, 1))},
    "PatchTSTForClassification": {"past_values": Floats((2, 32, 1))},
    "PeAudioEncoder": {"input_values": Floats((2, 1, 3840))},
    "PeAudioModel": {"input_values": Floats((2, 1, 3840))},
    "Pix2StructForConditionalGeneration": {"flattened_patches": [[[1.0] * 34] * 8] * 2},
    "PocketTTSAudioTokenizerDecoderModel": {"latents": Floats((2, 32, 8))},
    "Qwen3ASREncoder": {"input_features": Floats((2, 128, 100)), "input_features_mask": [[1] * 100] * 2},
    "SeamlessM4TForSpeechToText": {"input_features": Floats((2, 12, 160))},
    "SeamlessM4Tv2ForSpeechToText": {"input_features": Floats((2, 12, 160))},
    "SegGptModel": {
        "prompt_pixel_values": Floats((2, 3, 32, 32)),
        "prompt_masks": Floats((2, 3, 32, 32)),
        "pixel_values": Floats((2, 3, 32, 32)),
    },
    "Siglip2ForImageClassification": _SIGLIP2,
    "Siglip2Model": _SIGLIP2,
    "Siglip2VisionModel": _SIGLIP2,
    "Speech2TextForConditionalGeneration": {"input_features": Floats((2, 64, 80))},
    "SpeechEncoderDecoderModel": {"input_values": Floats((2, 3840))},
    "SplinterForPreTraining": {"input_ids": [[20, 30, 127, 40, 50, 31, 41, 51]] * 2},
    "SuperGlueForKeypointMatching": {"pixel_values": Floats((1, 2, 3, 64, 64))},
    "TimeSeriesTransformerModel": _SERIES,
    "TimesFm2_5ModelForPrediction": {"past_values": Floats((2, 64))},
    "TimesFmModelForPrediction": {"past_values": Floats((2, 64))},
    "TimesformerForVideoClassification": {"pixel_values": Floats((2, 8, 3, 64, 64))},
    "UdopForConditionalGeneration": {"bbox": [[[0.1, 0.1, 0.2, 0.2]] * 8] * 2},
    "UnivNetModel": {"input_features": Floats((2, 16, 100)), "noise_sequence": Floats((2, 16, 64))},
    "VibeVoiceAcousticTokenizerEncoderModel": {"hidden_states": Floats((2, 1, 3200))},
    "VibeVoiceAcousticTokenizerModel": {"input_values": Floats((2, 1, 3200))},
    "VideoLlama3VisionModel": {"merge_sizes": [1]},
    "VideoMAEForPreTraining": {"bool_masked_pos": [[True, False] * 64] * 2, "pixel_values": Floats((2, 16, 3, 64, 64))},
    "VideoMAEForVideoClassification": {"pixel_values": Floats((2, 16, 3, 64, 64))},
    "ViltForQuestionAnswering": {"pixel_values": Floats((2, 3, 64, 64))},
    "ViTMAEForPreTraining": {"noise": Floats((2, 16))},
    "VitsModel": {"input_ids": Ids((2, 8), 10, 37)},
    "VivitForVideoClassification": {"pixel_values": Floats((2, 32, 3, 64, 64))},
    "VoxtralRealtimeEncoder": {"input_features": Floats((2, 128, 64))},
    "Wav2Vec2BertForCTC": {"input_features": Floats((2, 12, 160))},
    "XCLIPModel": {"pixel_values": Floats((2, 8, 3, 64, 64))},
}

# Vision-language models that get an image with the prompt, and how many placeholder tokens it takes there.
IMAGE_TOKENS: dict[str, int] = {
    "AyaVisionForConditionalGeneration": 4,
    "Cohere2VisionForConditionalGeneration": 4,
    "CohereCompassForConditionalGeneration": 4,
    "Cosmos3EdgeForConditionalGeneration": 4,
    "Cosmos3OmniForConditionalGeneration": 4,
    "DeepseekVLForConditionalGeneration": 16,
    "Exaone4_5_ForConditionalGeneration": 4,
    "Florence2ForConditionalGeneration": 5,
    "Gemma3ForConditionalGeneration": 4,
    "Glm46VForConditionalGeneration": 4,
    "Glm4vForConditionalGeneration": 4,
    "Glm4vMoeForConditionalGeneration": 4,
    "Glm5NextForConditionalGeneration": 4,
    "GlmOcrForConditionalGeneration": 4,
    "GotOcr2ForConditionalGeneration": 1,
    "HYV4VLForConditionalGeneration": 6,
    "HunYuanVLForConditionalGeneration": 8,
    "HyperCLOVAXVisionV2ForConditionalGeneration": 4,
    "InternVLForConditionalGeneration": 4,
    "JanusForConditionalGeneration": 16,
    "Lfm3VlForConditionalGeneration": 4,
    "LightOnOcrForConditionalGeneration": 4,
    "LlavaForConditionalGeneration": 16,
    "MiniMaxM3SparseForConditionalGeneration": 4,
    "Mistral3ForConditionalGeneration": 4,
    "MistralLarge4ForConditionalGeneration": 4,
    "Ovis2ForConditionalGeneration": 16,
    "PaliGemmaForConditionalGeneration": 16,
    "QianfanOCRForConditionalGeneration": 4,
    "Qwen2VLForConditionalGeneration": 4,
    "Qwen2_5OmniThinkerForConditionalGeneration": 4,
    "Qwen2_5_VLForConditionalGeneration": 4,
    "Qwen3OmniMoeThinkerForConditionalGeneration": 4,
    "Qwen3VLForConditionalGeneration": 4,
    "Qwen3VLMoeForConditionalGeneration": 4,
    "Qwen3_5ForConditionalGeneration": 4,
    "Qwen3_5MoeForConditionalGeneration": 4,
    "Qwen4ExpForConditionalGeneration": 4,
    "Step3p7ForConditionalGeneration": 1,
    "VideoLlavaForConditionalGeneration": 16,
}
