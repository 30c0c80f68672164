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
    "BltForCausalLM": {"use_cache": False},
    "DiaForConditionalGeneration": {"decoder_input_ids": Ids((2, 8, 9))},
    "MusicgenForCausalLM": {"input_ids": Ids((8, 8))},
    "MusicgenMelodyForCausalLM": {"input_ids": Ids((8, 8))},
    "MusicgenForConditionalGeneration": {"decoder_input_ids": Ids((8, 8))},
    "MusicgenMelodyForConditionalGeneration": {"decoder_input_ids": Ids((8, 8))},
    "AudioFlamingo3Encoder": {"input_features_mask": [[1] * 256] * 2},
    "BrosModel": {"bbox": Floats((2, 8, 4))},
    "ClapModel": {"input_features": Floats((2, 1, 256, 64)), "is_longer": [[False], [False]]},
    "FunAsrNanoEncoder": {"input_features": Floats((2, 64, 560))},
    "Gemma3nAudioEncoder": {"audio_mel": Floats((2, 64, 128)), "audio_mel_mask": [[False] * 64] * 2},
    "Gemma4AudioModel": {"input_features": Floats((2, 64, 128))},
    "Gemma4VisionModel": {
        "pixel_values": Floats((1, 9, 768)),
        "pixel_position_ids": [[[x, y] for y in range(3) for x in range(3)]],
    },
    "GraniteSpeech5Encoder": {"input_features": Floats((2, 64, 320))},
    "GraniteSpeech5ForCTC": {"input_features": Floats((2, 64, 320))},
    "HieraForPreTraining": {"noise": Floats((2, 4))},
    "Kimi_K25VisionModel": {"pixel_values": Floats((16, 3, 14, 14))},
    "MiniCPMOcrVisionModel": {"pixel_values": Floats((1, 3, 16, 512)), "target_sizes": [[4, 4], [4, 4]]},
    "MiniCPMV4_7VisionModel": {"pixel_values": Floats((1, 3, 16, 512)), "target_sizes": [[4, 4], [4, 4]]},
    "MuseGlimmerVisionModel": {"pixel_values": Floats((16, 1176))},
    "MuseSparkVisionModel": {"pixel_values": Floats((16, 1176))},
    "Nemotron3_5TranscribeWordTimestampModel": {"inputs_embeds": Floats((2, 8, 32))},
    "PeAudioEncoder": {"input_values": Floats((2, 1, 3840))},
    "PeAudioModel": {"input_values": Floats((2, 1, 3840))},
    "Qwen3ASREncoder": {"input_features": Floats((2, 128, 100)), "input_features_mask": [[1] * 100] * 2},
    "Siglip2ForImageClassification": _SIGLIP2,
    "Siglip2VisionModel": _SIGLIP2,
    "SplinterForPreTraining": {"input_ids": [[20, 30, 127, 40, 50, 31, 41, 51]] * 2},
    "UnivNetModel": {"input_features": Floats((2, 16, 100)), "noise_sequence": Floats((2, 16, 64))},
    "VibeVoiceAcousticTokenizerEncoderModel": {"hidden_states": Floats((2, 1, 3200))},
    "VibeVoiceAcousticTokenizerModel": {"input_values": Floats((2, 1, 3200))},
    "VideoLlama3VisionModel": {"merge_sizes": [1]},
    "ViTMAEForPreTraining": {"noise": Floats((2, 16))},
    "VoxtralRealtimeEncoder": {"input_features": Floats((2, 128, 64))},
    "ASTForAudioClassification": {"input_values": Floats((2, 1024, 128))},
    "AlignModel": {"pixel_values": Floats((2, 3, 64, 64))},
    "ColModernVBertForRetrieval": {"pixel_values": None},
    "ColPaliForRetrieval": {"pixel_values": None},
    "IdeficsForVisionText2Text": {
        "pixel_values": Floats((2, 1, 3, 64, 64)),
        "image_attention_mask": [[[1]] * 8] * 2,
    },
    "Pix2StructForConditionalGeneration": {"flattened_patches": [[[1.0] * 34] * 8] * 2},
    "SeamlessM4TForSpeechToText": {"input_features": Floats((2, 12, 160))},
    "SeamlessM4Tv2ForSpeechToText": {"input_features": Floats((2, 12, 160))},
    "Siglip2Model": _SIGLIP2,
    "SpeechEncoderDecoderModel": {"input_values": Floats((2, 3840))},
    "UdopForConditionalGeneration": {"bbox": [[[0.1, 0.1, 0.2, 0.2]] * 8] * 2},
    "ViltForQuestionAnswering": {"pixel_values": Floats((2, 3, 64, 64))},
    "VitsModel": {"input_ids": Ids((2, 8), 10, 37)},
    "BridgeTowerModel": {"pixel_values": Floats((2, 3, 64, 64))},
    "Wav2Vec2BertForCTC": {"input_features": Floats((2, 12, 160))},
    "NeoMMEForMaskedLM": {"pixel_values": None},
    "AutoformerModel": _SERIES,
    "Blip2QFormerModel": {"encoder_hidden_states": Floats((2, 6, 32)), "query_embeds": Floats((2, 4, 32))},
    "DacModel": {"input_values": Floats((2, 1, 2048))},
    "DecisionTransformerModel": {
        "states": Floats((2, 4, 17)),
        "actions": Floats((2, 4, 4)),
        "rewards": Floats((2, 4, 1)),
        "returns_to_go": Floats((2, 4, 1)),
        "timesteps": Ids((2, 4), 0, 20),
        "attention_mask": [[1, 1, 1, 1]] * 2,
    },
    "GlmAsrEncoder": {"input_features": Floats((2, 128, 64))},
    "InformerModel": _SERIES,
    "LightGlueForKeypointMatching": {"pixel_values": Floats((1, 2, 3, 64, 64))},
    "LxmertForPreTraining": {"visual_feats": Floats((2, 4, 2048)), "visual_pos": Floats((2, 4, 4))},
    "MimiDecoderModel": {"latents": Floats((2, 32, 8))},
    "MuseSparkAudioModel": {"input_values": Floats((2, 1920))},
    "OmniASRAudioModel": {"input_values": Floats((2, 1, 3840))},
    "OmniASRForCTC": {"input_values": Floats((2, 1, 3840))},
    "PatchTSMixerForTimeSeriesClassification": {"past_values": Floats((2, 32, 1))},
    "PatchTSTForClassification": {"past_values": Floats((2, 32, 1))},
    "PocketTTSAudioTokenizerDecoderModel": {"latents": Floats((2, 32, 8))},
    "SegGptModel": {
        "prompt_pixel_values": Floats((2, 3, 32, 32)),
        "prompt_masks": Floats((2, 3, 32, 32)),
        "pixel_values": Floats((2, 3, 32, 32)),
    },
    "Speech2TextForConditionalGeneration": {"input_features": Floats((2, 64, 80))},
    "SuperGlueForKeypointMatching": {"pixel_values": Floats((1, 2, 3, 64, 64))},
    "TimeSeriesTransformerModel": _SERIES,
    "TimesFm2_5ModelForPrediction": {"past_values": Floats((2, 64))},
    "TimesFmModelForPrediction": {"past_values": Floats((2, 64))},
    "TimesformerForVideoClassification": {"pixel_values": Floats((2, 8, 3, 64, 64))},
    "VideoMAEForPreTraining": {"bool_masked_pos": [[True, False] * 64] * 2, "pixel_values": Floats((2, 16, 3, 64, 64))},
    "VideoMAEForVideoClassification": {"pixel_values": Floats((2, 16, 3, 64, 64))},
    "VivitForVideoClassification": {"pixel_values": Floats((2, 32, 3, 64, 64))},
    "XCLIPModel": {"pixel_values": Floats((2, 8, 3, 64, 64))},
}
