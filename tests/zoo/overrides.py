"""What the generic rules get wrong, as data."""

from typing import Any

_SERIES = {"prediction_length": 4, "context_length": 16, "num_time_features": 1}
_RESNET = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "backbone_config": {
        "model_type": "resnet",
        "embedding_size": 16,
        "hidden_sizes": [16, 32, 64, 128],
        "depths": [1, 1, 1, 1],
        "out_features": ["stage4"],
    },
}

_MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}}
_MROPE_HALF = {
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [0, 1, 1],
    }
}

# Fields by configuration class, wherever it occurs.
CONFIG_FIELDS: dict[str, dict[str, Any]] = {
    "AlignConfig": {"projection_dim": 640},
    "AutoformerConfig": _SERIES,
    "BambaConfig": {"attn_layer_indices": [1]},
    "BridgeTowerConfig": {"hidden_size": 64},
    "BridgeTowerTextConfig": {"hidden_size": 64},
    "BridgeTowerVisionConfig": {"hidden_size": 64},
    "BrosConfig": {"hidden_size": 64},
    "ChameleonConfig": {"vocabulary_map": {"<image>": 4}},
    "ClapAudioConfig": {"hidden_size": 256},
    "CohereCompassTextConfig": {
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        }
    },
    "DbrxConfig": {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0}},
    "DeepseekOcr2TextConfig": {"mlp_layer_types": ["dense", "sparse"]},
    "DonutSwinConfig": {"window_size": 2},
    "DoryConfig": {
        "num_hidden_layers": 3,
        "n_input_layers": 1,
        "n_recurrent_layers": 1,
        "n_output_layers": 1,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "Dots1Config": {"moe_intermediate_size": 32, "n_shared_experts": 1},
    "DPTConfig": {"num_hidden_layers": 12, "neck_hidden_sizes": [16, 16, 16, 16]},
    "EfficientLoFTRConfig": {"hidden_size": 256},
    "EfficientNetConfig": {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280},
    "Emu3Config": {"vocabulary_map": {"<image>": 4, "<|extra_200|>": 5}},
    "Emu3VQVAEConfig": {"base_channels": 32, "channel_multiplier": [1, 1, 1, 1], "num_res_blocks": 1},
    "EsmConfig": {"vocab_size": 128, "pad_token_id": 1, "mask_token_id": 4},
    "FunAsrNanoAdaptorConfig": {"intermediate_size": 8},
    "Gemma3Config": {"mm_tokens_per_image": 4},
    "Gemma3nTextConfig": {
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "intermediate_size": [64] * 4,
        "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
    },
    "Glm4vMoeTextConfig": _MROPE_HALF,
    "Glm4vTextConfig": _MROPE,
    "GlmImageTextConfig": _MROPE,
    "GlmOcrTextConfig": _MROPE,
    "GPTNeoConfig": {"attention_types": [[["global", "local"], 1]]},
    "GraniteMoeHybridConfig": {"layer_types": ["linear_attention", "full_attention"]},
    "HieraConfig": {"decoder_hidden_size": 32, "decoder_depth": 1, "decoder_num_heads": 4},
    "HunYuanVLTextConfig": _MROPE,
    "InformerConfig": _SERIES,
    "JambaConfig": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "LayoutLMv3Config": {"coordinate_size": 6, "shape_size": 4},
    "Lfm2MoeConfig": {"layer_types": ["full_attention", "conv"], "num_dense_layers": 1},
    "LiltConfig": {"hidden_size": 48},
    "LwDetrConfig": {"projector_scale_factors": [1.0]},
    "Mamba2Config": {"head_dim": 16},
    "Mistral4Config": {"head_dim": 16},
    "Molmo2AdapterConfig": {"vision_feature_layer": [1, 0]},
    "MoonshineConfig": {"encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4},
    "MoonshineStreamingConfig": {"num_key_value_heads": 4},
    "MuseSparkAudioConfig": {"num_hidden_layers": 4},
    "NeoMMEConfig": {"head_dim": 16},
    "PaddleOCRTextConfig": _MROPE,
    "PPDocLayoutV2Config": {"class_thresholds": [0.5, 0.5], "class_order": [0, 1]},
    "PPFormulaNetVisionConfig": {"output_channels": 256},
    "Qwen2_5_VLTextConfig": _MROPE,
    "Qwen2_5OmniTextConfig": _MROPE,
    "Qwen2VLTextConfig": _MROPE,
    "Qwen4ExpTextConfig": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
    },
    "RecurrentGemmaConfig": {"num_hidden_layers": 3},
    "ReformerConfig": {
        "axial_pos_shape": (2, 4),
        "axial_pos_embds_dim": (16, 16),
        "attention_head_size": 8,
        "feed_forward_size": 64,
        "attn_layers": ("local", "lsh"),
        "local_attn_chunk_length": 4,
        "lsh_attn_chunk_length": 4,
        "num_buckets": 2,
        "hash_seed": 0,
    },
    "SegGptConfig": {
        "image_size": (64, 32),
        "num_hidden_layers": 2,
        "intermediate_hidden_state_indices": [1],
        "merge_index": 0,
    },
    "ShieldGemma2Config": {"mm_tokens_per_image": 4, "yes_token_index": 3, "no_token_index": 4},
    "SLANeXtVisionConfig": {"output_channels": 256},
    "Step3p7TextConfig": {"sliding_window": 4},
    "SuperGlueConfig": {"hidden_size": 256},
    "SwinConfig": {"window_size": 2},
    "TimeSeriesTransformerConfig": _SERIES,
    "VitMatteConfig": {"fusion_hidden_sizes": [32, 16, 16, 16], "convstream_hidden_sizes": [8, 8, 16]},
    "VJEPA2Config": {"frames_per_clip": 4, "crop_size": 64},
    "xLSTMConfig": {"hidden_size": 128, "embedding_dim": 128, "num_heads": 2},
    "XmodConfig": {"default_language": "en_XX"},
    "Zamba2Config": {
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_head_dim": 16,
        "attention_hidden_size": 64,
    },
    "ZambaConfig": {
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_head_dim": 16,
        "attention_hidden_size": 64,
    },
}

# Fields of the outermost configuration by architecture.
ARCHITECTURE_FIELDS: dict[str, dict[str, Any]] = {
    "ConditionalDetrForObjectDetection": _RESNET,
    "DabDetrForObjectDetection": _RESNET,
    "DeformableDetrForObjectDetection": _RESNET,
    "DetrForObjectDetection": _RESNET,
    "ReformerModelWithLMHead": {"is_decoder": True},
    "T5GemmaEncoderModel": {"is_encoder_decoder": False},
    "TableTransformerForObjectDetection": _RESNET,
    "Wav2Vec2BertForCTC": {"vocab_size": 128},
    "Wav2Vec2ConformerForCTC": {"vocab_size": 128},
}
